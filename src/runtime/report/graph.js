// One graph on a canvas: drawn by level of detail, moved and scaled, with an overview beside it.
"use strict";

const kStripWidth = 64;

function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
}

function shortened(context, text, width) {
  if (context.measureText(text).width <= width) return text;
  let low = 1, high = text.length;  // characters of the end that fit
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (context.measureText("…" + text.slice(text.length - middle)).width <= width) low = middle;
    else high = middle - 1;
  }
  return "…" + text.slice(text.length - low);
}

class GraphView {
  // `about(node)` gives {region, colour, share, short (time), time} of a node; `chosen(node)` is
  // called with a node that is clicked, or null.
  constructor(canvas, graph, about, chosen) {
    Object.assign(this, {canvas, graph, about, chosen});
    this.context = canvas.getContext("2d");
    this.scale = 1;
    this.x = this.y = 0;
    this.marked = new Set();
    this.hover = null;
    this.folded = false;
    this.facts = graph.nodes.map(node => about(node));
    this.setFolded(graph.layouts.length > 1);
    this.listen();
    new ResizeObserver(() => this.resize()).observe(canvas);
  }

  canFold() { return this.graph.layouts.length > 1; }

  setFolded(folded) {
    this.folded = folded && this.canFold();
    this.layout = this.graph.layouts[this.folded ? 1 : 0];
    this.itemOf = new Map();
    this.items = this.layout.items.map(([content, x, y, width, height], number) => {
      const item = {number, content, x, y, width, height, fold: content < 0 ? this.graph.folds[-1 - content] : null,
                    node: content < 0 ? null : this.graph.nodes[content],
                    facts: content < 0 ? {} : this.facts[content]};
      if (item.fold) {
        const end = item.fold.first + item.fold.period * item.fold.count;
        for (let i = item.fold.first; i < end; i++) this.itemOf.set(i, item);
      } else {
        this.itemOf.set(content, item);
      }
      return item;
    });
    this.regions = new Map();
    for (const item of this.items) {
      const region = item.facts.region;
      if (region === undefined) continue;
      if (!this.regions.has(region)) this.regions.set(region, {items: [], edges: [], colour: item.facts.colour});
      this.regions.get(region).items.push(item);
    }
    this.edges = this.layout.edges.map(([from, to, ...bends]) => {
      const a = this.items[from], b = this.items[to], points = [[a.x, a.y + a.height / 2]];
      for (let i = 0; i < bends.length; i += 2) points.push([bends[i], bends[i + 1]]);
      points.push([b.x, b.y - b.height / 2]);
      const ys = [points[0][1], points[points.length - 1][1]];
      const edge = {a, b, points, top: Math.min(...ys), bottom: Math.max(...ys),
                    far: points.length === 2 && ys[1] - ys[0] > 600};
      const region = a.facts.region;
      if (region !== undefined && region === b.facts.region && !edge.far) this.regions.get(region).edges.push(edge);
      return edge;
    });
    this.strip = null;
    this.canvas.dispatchEvent(new Event("fold", {bubbles: true}));
    this.redraw();
  }

  resize() {
    const ratio = window.devicePixelRatio || 1, box = this.canvas.getBoundingClientRect();
    if (box.width === 0) return;
    const first = !this.width;
    this.ratio = ratio;
    this.width = box.width;
    this.height = box.height;
    this.canvas.width = Math.round(box.width * ratio);
    this.canvas.height = Math.round(box.height * ratio);
    this.strip = null;
    if (first) this.fit(true);
    if (first && this.marked.size > 0) this.show([...this.marked]);
    this.draw();
  }

  // All of it, or where that is too small to read (`readable`) the top of it.
  fit(readable) {
    const {width, height} = this.layout, margin = 48;
    const across = (this.width - kStripWidth - margin) / width, down = (this.height - margin) / height;
    this.scale = Math.min(across, down, 1.1);
    if (readable && this.scale < 0.5) this.scale = Math.min(Math.max(across, 0.5), 0.9);
    this.x = width / 2 - (this.width - kStripWidth) / 2 / this.scale;
    this.y = height * this.scale > this.height ? -margin / this.scale : (height - this.height / this.scale) / 2;
    this.redraw();
  }

  // Nodes by their places in graph.nodes.
  show(nodes, move = true) {
    this.marked = new Set(nodes);
    if (this.folded && nodes.length > 0 && nodes.every(node => this.itemOf.get(node)?.fold)) this.setFolded(false);
    const items = nodes.map(node => this.itemOf.get(node)).filter(item => item);
    if (move && items.length > 0 && this.width) {
      const left = Math.min(...items.map(item => item.x - item.width / 2)), right = Math.max(...items.map(item => item.x + item.width / 2));
      const top = Math.min(...items.map(item => item.y)), bottom = Math.max(...items.map(item => item.y));
      const room = this.width - kStripWidth;
      this.scale = Math.min(1, Math.max(0.25, Math.min(room / (right - left + 120), this.height / (bottom - top + 160))));
      this.x = (left + right) / 2 - room / 2 / this.scale;
      const fits = (bottom - top + 80) * this.scale < this.height;
      this.y = fits ? (top + bottom) / 2 - this.height / 2 / this.scale : top - 60 / this.scale;
    }
    this.redraw();
  }

  redraw() {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => { this.waiting = false; this.draw(); });
  }

  line(context, points) {
    let [x, y] = points[0];
    context.moveTo(x, y);
    for (let i = 1; i < points.length; i++) {
      const [nx, ny] = points[i], middle = (y + ny) / 2;
      if (Math.abs(nx - x) < 1) context.lineTo(nx, ny);
      else context.bezierCurveTo(x, middle, nx, middle, nx, ny);
      x = nx; y = ny;
    }
  }

  box(context, item, grow = 0, radius = 7) {
    const {x, y, width, height} = item;
    context.roundRect(x - width / 2 - grow, y - height / 2 - grow, width + 2 * grow, height + 2 * grow, radius + grow);
  }

  draw() {
    if (!this.width) return;
    const c = this.context, {scale} = this;
    const view = {top: this.y - 40, bottom: this.y + this.height / scale + 40, left: this.x - 40, right: this.x + this.width / scale + 40};
    const visible = item => item.y + item.height > view.top && item.y - item.height < view.bottom &&
        item.x + item.width > view.left && item.x - item.width < view.right;
    const passes = edge => edge.bottom > view.top && edge.top < view.bottom;
    c.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    c.fillStyle = colour("canvas");
    c.fillRect(0, 0, this.width, this.height);
    c.setTransform(this.ratio * scale, 0, 0, this.ratio * scale, -this.x * scale * this.ratio, -this.y * scale * this.ratio);
    this.drawRegions(c, visible, passes);
    this.drawEdges(c, passes);
    c.lineJoin = "round";
    for (const item of this.items) if (visible(item)) this.drawItem(c, item);
    this.drawStrip(c);
  }

  // A region is the union of its nodes' boxes and the edges between them: first wider, in the
  // colour of its outline, then narrower in that of its inside.
  drawRegions(c, visible, passes) {
    c.lineCap = "round";
    for (const region of this.regions.values()) {
      const items = region.items.filter(visible), edges = region.edges.filter(passes);
      if (items.length + edges.length === 0) continue;
      const strong = colour(region.colour), outline = Math.max(1.4, 1.1 / this.scale);
      for (const [grow, style] of [[outline, strong], [0, `color-mix(in srgb, ${strong} 16%, ${colour("canvas")})`]]) {
        c.fillStyle = c.strokeStyle = style;
        c.beginPath();
        for (const item of items) this.box(c, item, 7 + grow);
        c.fill();
        c.beginPath();
        for (const edge of edges) this.line(c, edge.points);
        c.lineWidth = 9 + 2 * grow;
        c.stroke();
      }
    }
  }

  // An edge over very many layers shows its ends alone, unless the pointer or the choice is at one.
  drawEdges(c, passes) {
    const near = new Set([this.hover, ...[...this.marked].map(node => this.itemOf.get(node))]);
    const chosen = edge => this.hover === edge.a || this.hover === edge.b || edge.far && (near.has(edge.a) || near.has(edge.b));
    c.lineCap = "butt";
    for (const marked of [false, true]) {
      c.strokeStyle = colour(marked ? "accent" : "edge");
      c.lineWidth = (marked ? 2 : 1.3) / Math.max(Math.min(this.scale, 1), 0.4);
      c.beginPath();
      for (const edge of this.edges) {
        if (!passes(edge) || chosen(edge) !== marked) continue;
        const [x, y] = edge.points[edge.points.length - 1], [startX, startY] = edge.points[0];
        if (edge.far && !marked) {
          c.moveTo(startX, startY); c.lineTo(startX, startY + 16);
          c.moveTo(x, y - 22); c.lineTo(x, y);
        } else {
          this.line(c, edge.points);
        }
        if (this.scale > 0.45) { c.moveTo(x - 3.5, y - 6); c.lineTo(x, y); c.lineTo(x + 3.5, y - 6); }
      }
      c.stroke();
    }
  }

  drawItem(c, item) {
    const {x, y, width, height, facts, node, fold} = item, left = x - width / 2, top = y - height / 2;
    const isEnd = node && node.role !== "node";
    const marked = fold ? [...this.marked].some(i => this.itemOf.get(i) === item) : this.marked.has(item.content);
    c.beginPath();
    this.box(c, item, 0, isEnd ? height / 2 : 7);
    c.fillStyle = colour(isEnd ? "input" : "node");
    c.fill();
    c.lineWidth = marked ? 3 / Math.min(this.scale, 1) : 1.2;
    c.strokeStyle = colour(marked ? "hit" : item === this.hover ? "accent" : "node-line");
    if (fold) c.setLineDash([5, 4]);
    c.stroke();
    c.setLineDash([]);
    if (facts.colour && !isEnd) {
      c.save();
      c.clip();
      c.fillStyle = colour(facts.colour);
      c.fillRect(left, top, this.scale < 0.4 ? width : 5, height);
      if (facts.share > 0) c.fillRect(left, top + height - 4, width * Math.min(1, facts.share), 4);
      c.restore();
    }
    if (this.scale < 0.4) return;
    c.textAlign = "center";
    c.textBaseline = "middle";
    c.fillStyle = colour("ink");
    c.font = `600 ${isEnd ? 11.5 : 13}px system-ui, sans-serif`;
    if (fold) {
      c.fillText(`${fold.count} more of these`, x, y - 8);
      c.font = "11px system-ui, sans-serif";
      c.fillStyle = colour("soft");
      c.fillText(`${fold.period * fold.count} nodes; click to unfold`, x, y + 10);
      return;
    }
    if (isEnd) {
      c.fillText(shortened(c, node.name, width - 18), x, y);
      return;
    }
    if (facts.short) {
      c.textAlign = "left";
      c.fillText(shortened(c, node.title, width - 80), left + 13, y - 8);
      c.font = "11.5px system-ui, sans-serif";
      c.textAlign = "right";
      c.fillText(facts.short, left + width - 9, y - 8);
      c.textAlign = "center";
    } else {
      c.fillText(shortened(c, node.title, width - 22), x + 2, y - 8);
    }
    c.font = "11px system-ui, sans-serif";
    c.fillStyle = colour("soft");
    c.fillText(shortened(c, node.name, width - 22), x + 2, y + 9);
  }

  // The whole graph at the right edge, with what is in view.
  drawStrip(c) {
    const ratio = this.ratio, {width, height} = this.layout;
    const scale = Math.min((kStripWidth - 14) / width, (this.height - 16) / height);
    const stretch = {x: scale, y: Math.max(scale, Math.min((this.height - 16) / height, scale * 6))};
    if (!this.strip) {
      this.strip = document.createElement("canvas");
      this.strip.width = Math.max(1, Math.ceil(width * stretch.x * ratio));
      this.strip.height = Math.max(1, Math.ceil(height * stretch.y * ratio));
      const s = this.strip.getContext("2d");
      for (const item of this.items) {
        s.fillStyle = colour(item.facts.region !== undefined ? item.facts.colour : item.fold ? "soft" : "faint");
        s.fillRect((item.x - item.width / 2) * stretch.x * ratio, (item.y - item.height / 2) * stretch.y * ratio,
                   Math.max(1, item.width * stretch.x * ratio), Math.max(1, item.height * stretch.y * ratio));
      }
    }
    this.place = {left: this.width - kStripWidth + (kStripWidth - width * stretch.x) / 2, top: Math.max(8, (this.height - height * stretch.y) / 2), stretch};
    c.setTransform(ratio, 0, 0, ratio, 0, 0);
    c.fillStyle = colour("paper");
    c.fillRect(this.width - kStripWidth, 0, kStripWidth, this.height);
    c.fillStyle = colour("line");
    c.fillRect(this.width - kStripWidth, 0, 1, this.height);
    c.drawImage(this.strip, this.place.left, this.place.top, width * stretch.x, height * stretch.y);
    const top = Math.max(2, this.place.top + this.y * stretch.y);
    const bottom = Math.min(this.height - 2, this.place.top + (this.y + this.height / this.scale) * stretch.y);
    c.strokeStyle = colour("accent");
    c.lineWidth = 1.5;
    c.strokeRect(this.width - kStripWidth + 3, top, kStripWidth - 6, Math.max(6, bottom - top));
  }

  itemAt(px, py) {
    const x = this.x + px / this.scale, y = this.y + py / this.scale;
    return this.items.find(item => Math.abs(item.x - x) <= item.width / 2 && Math.abs(item.y - y) <= item.height / 2) || null;
  }

  zoom(factor, px = (this.width - kStripWidth) / 2, py = this.height / 2) {
    const before = this.scale;
    this.scale = Math.min(3, Math.max(0.01, this.scale * factor));
    this.x += px / before - px / this.scale;
    this.y += py / before - py / this.scale;
    this.redraw();
  }

  listen() {
    const canvas = this.canvas, pointers = new Map();
    let moved = 0, inStrip = false;
    const at = event => { const box = canvas.getBoundingClientRect(); return [event.clientX - box.left, event.clientY - box.top]; };
    const jump = y => { this.y = (y - this.place.top) / this.place.stretch.y - this.height / 2 / this.scale; this.redraw(); };
    canvas.addEventListener("wheel", event => {
      event.preventDefault();
      if (event.ctrlKey || event.metaKey || !event.shiftKey && event.deltaMode === 0 && Math.abs(event.deltaY) >= 50 || event.deltaMode !== 0) {
        this.zoom(Math.exp(-Math.sign(event.deltaY) * Math.min(Math.abs(event.deltaY), 120) / 500), ...at(event));
      } else {
        this.x += event.deltaX / this.scale;
        this.y += event.deltaY / this.scale;
        this.redraw();
      }
    }, {passive: false});
    canvas.addEventListener("pointerdown", event => {
      canvas.setPointerCapture(event.pointerId);
      pointers.set(event.pointerId, at(event));
      moved = 0;
      inStrip = at(event)[0] > this.width - kStripWidth;
      if (inStrip) jump(at(event)[1]);
    });
    canvas.addEventListener("pointermove", event => {
      const [x, y] = at(event), before = pointers.get(event.pointerId);
      if (!before) {
        const item = x > this.width - kStripWidth ? null : this.itemAt(x, y);
        if (item !== this.hover) { this.hover = item; this.redraw(); }
        canvas.classList.toggle("over", item !== null);
        this.tell(item, event);
        return;
      }
      pointers.set(event.pointerId, [x, y]);
      if (inStrip) { jump(y); return; }
      if (pointers.size === 2) {
        const other = [...pointers].find(([id]) => id !== event.pointerId)[1];
        this.zoom(Math.hypot(x - other[0], y - other[1]) / Math.max(1, Math.hypot(before[0] - other[0], before[1] - other[1])), (x + other[0]) / 2, (y + other[1]) / 2);
        return;
      }
      moved += Math.abs(x - before[0]) + Math.abs(y - before[1]);
      canvas.classList.toggle("moving", moved > 3);
      this.x -= (x - before[0]) / this.scale;
      this.y -= (y - before[1]) / this.scale;
      this.redraw();
    });
    const release = event => {
      canvas.classList.remove("moving");
      if (!pointers.delete(event.pointerId) || moved > 3 || inStrip) return;
      const item = this.itemAt(...at(event));
      if (item && item.fold) this.setFolded(false), this.show([item.fold.first]);
      else this.chosen(item ? item.content : null);
    };
    canvas.addEventListener("pointerup", release);
    canvas.addEventListener("pointercancel", event => pointers.delete(event.pointerId));
    canvas.addEventListener("pointerleave", () => { this.hover = null; this.tell(null); this.redraw(); });
    canvas.addEventListener("dblclick", event => this.zoom(1.8, ...at(event)));
    canvas.addEventListener("keydown", event => {
      const step = 80 / this.scale;
      const keys = {ArrowUp: [0, -step], ArrowDown: [0, step], ArrowLeft: [-step, 0], ArrowRight: [step, 0],
                    PageUp: [0, -this.height / this.scale * 0.9], PageDown: [0, this.height / this.scale * 0.9]};
      if (keys[event.key]) { this.x += keys[event.key][0]; this.y += keys[event.key][1]; this.redraw(); event.preventDefault(); }
      else if (event.key === "+" || event.key === "=") this.zoom(1.25);
      else if (event.key === "-") this.zoom(0.8);
      else if (event.key === "0") this.fit(false);
    });
  }

  tell(item, event) {
    const tip = document.getElementById("tip");
    tip.hidden = !item || !item.node;
    if (tip.hidden) return;
    const {node, facts} = item;
    tip.replaceChildren(element("b", {}, node.title + (facts.time ? "  " + facts.time : "")), node.name + "\n" + node.detail);
    tip.style.left = Math.min(event.clientX + 14, innerWidth - 470) + "px";
    tip.style.top = Math.min(event.clientY + 16, innerHeight - 120) + "px";
  }
}
