// Texts of expressions as mathematics: `sum_r1<16(%4[i0,r1]*exp(%5[i0] - d0))` with indices as
// subscripts, values by short names, and the usual signs.
"use strict";

const kSigns = {sum: "Σ", prod: "Π", max: "max", min: "min", argmax: "argmax", argmin: "argmin", topk: "top", bottomk: "bottom"};

function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "onclick") made.onclick = value;
    else if (value !== null && value !== undefined) made.setAttribute(name, value);
  }
  made.append(...children.filter(child => child !== null && child !== undefined));
  return made;
}

// A letter with its number as a subscript, as in d₀.
function variable(letter, number, above) {
  const made = element("span", {}, element("i", {}, letter));
  if (number !== "") made.append(element("sub", {}, number));
  if (above) made.append(element("sup", {}, above));
  return made;
}

class Equations {
  // `values` has the names by %number; those of shared parts are like "s[j]".
  constructor(values) {
    this.names = new Map();
    let next = 1;
    for (const [number, name] of Object.entries(values)) {
      const shared = /^([a-z])(\d*)\[/.exec(name);
      this.names.set(number, shared ? {letter: shared[1], sub: shared[2], shared: true}
                                    : {letter: "x", sub: String(next++), full: name});
    }
  }

  render(text) {
    const reader = {text, at: 0};
    const made = element("span", {class: "math"});
    this.read(reader, made, "");
    return made;
  }

  // What stands between brackets at the reader's place, which it passes.
  inside(reader) {
    const close = reader.text[reader.at++] === "[" ? "]" : ")", made = element("span");
    this.read(reader, made, close);
    reader.at++;
    return [...made.childNodes];
  }

  // The arguments of a function, likewise.
  inList(reader) {
    const list = [];
    reader.at++;
    while (reader.at < reader.text.length && reader.text[reader.at - 1] !== ")") {
      const made = element("span");
      this.read(reader, made, ",)");
      reader.at++;
      list.push(made);
    }
    return list;
  }

  phrase(name, reader) {
    const list = this.inList(reader), soft = text => element("span", {class: "word"}, text);
    if (name === "select" && list.length === 3) return element("span", {}, "(", list[1], soft(" if "), list[0], soft(" else "), list[2], ")");
    if (name === "not") return element("span", {}, "¬(", list[0], ")");
    return element("span", {}, "(", list[0], {isneginf: " = −∞", isposinf: " = ∞", isnan: " is NaN"}[name], ")");
  }

  // Up to one of the characters of `end`, which is left.
  read(reader, into, end) {
    const patterns = [
      [/%\d+/y, found => this.value(found[0])],
      [/(sum|prod|max|min|argmax|argmin|topk|bottomk)_([a-z]+)(\d*)</y, found => this.reduction(found, reader)],
      [/\b([dA])(\d+)\b/y, found => variable(found[1], found[2])],
      [/\bnew(\d+)\b/y, found => variable("m", found[1])],
      [/\bold(\d+)\b/y, found => variable("m", found[1], "old")],
      [/\bproduct(\d*)\b/y, found => variable("p", found[1])],
      [/\binf\b/y, () => "∞"],
      [/-?3\.40282347e\+38/y, found => (found[0][0] === "-" ? "−" : "") + "3.4·10³⁸"],
      [/\d+(\.\d+)?(e[+-]?\d+)?/y, found => found[0]],
      [/(select|isneginf|isposinf|isnan|not)(?=\()/y, found => this.phrase(found[0], reader)],
      [/[A-Za-z_]\w*(?=\()/y, found => element("span", {class: "op"}, found[0])],
      [/,/y, () => ", "],
      [/([ijr])(\d*)\b/y, found => variable(found[1], found[2])],
      [/[A-Za-z_]\w*/y, found => element("i", {}, found[0])],
      [/<=/y, () => "≤"], [/>=/y, () => "≥"], [/==/y, () => "="], [/!=/y, () => "≠"],
      [/ & /y, () => " ∧ "], [/ \| /y, () => " ∨ "], [/\*/y, () => "·"], [/-/y, () => "−"],
    ];
    while (reader.at < reader.text.length && !end.includes(reader.text[reader.at])) {
      const character = reader.text[reader.at];
      if (character === "(") {
        into.append("(", ...this.inside(reader), ")");
        continue;
      }
      if (character === "[") {
        const indices = this.inside(reader);
        if (this.shared) into.append(element("sub", {}, ...indices));
        else into.append(element("span", {class: "indices"}, "[", ...indices, "]"));
        continue;
      }
      let matched = false;
      for (const [pattern, make] of patterns) {
        pattern.lastIndex = reader.at;
        const found = pattern.exec(reader.text);
        if (!found) continue;
        reader.at = pattern.lastIndex;
        into.append(make(found));
        matched = true;
        break;
      }
      if (!matched) into.append(reader.text[reader.at++]);
    }
  }

  value(number) {
    const name = this.names.get(number);
    this.shared = name !== undefined && name.shared;
    return name ? variable(name.letter, name.sub) : number;
  }

  // The extent up to the parenthesis of the body.
  reduction(found, reader) {
    const start = reader.at;
    let depth = 0;
    while (reader.at < reader.text.length) {
      const character = reader.text[reader.at];
      if (character === "(") {
        if (depth === 0 && reader.at > start) break;
        depth++;
      } else if (character === ")") {
        depth--;
      }
      reader.at++;
      if (depth === 0 && character === ")") break;
    }
    const below = element("sub", {}, variable(found[2], found[3]), "<");
    this.read({text: reader.text.slice(start, reader.at), at: 0}, below, "");
    return element("span", {class: "op"}, kSigns[found[1]], below);
  }
}
