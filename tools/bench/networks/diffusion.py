"""Transformers of diffusion, whose norms are modulated by the time step."""

import torch
import torch.nn.functional as F
from torch import nn


def modulated(x, shift, scale):
    return F.layer_norm(x, x.shape[-1:]) * (1 + scale) + shift


def split_heads(x, heads):
    return x.unflatten(-1, (heads, -1)).transpose(1, 2)


def attention(queries, keys, values):
    return F.scaled_dot_product_attention(queries, keys, values).transpose(1, 2).flatten(2)


def waves(time, width):
    angles = time[:, None].float() * torch.exp(torch.arange(width // 2, device=time.device) * (-18.42 / width))
    return torch.cat([angles.cos(), angles.sin()], -1).to(time.dtype)


def rotated(x, angles):
    even, odd = x.unflatten(-1, (-1, 2)).unbind(-1)
    turned = [even * angles.cos() - odd * angles.sin(), even * angles.sin() + odd * angles.cos()]
    return torch.stack(turned, -1).flatten(-2)


def feed_forward(width, inner=4):
    return nn.Sequential(nn.Linear(width, inner * width), nn.GELU(approximate="tanh"), nn.Linear(inner * width, width))


def embedding(entering, width):
    return nn.Sequential(nn.Linear(entering, width), nn.SiLU(), nn.Linear(width, width))


class Block(nn.Module):
    """Attention and a feed-forward layer, both modulated by a condition."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads, self.condition = heads, nn.Linear(width, 6 * width)
        self.enter, self.leave, self.feed = nn.Linear(width, 3 * width), nn.Linear(width, width), feed_forward(width)

    def forward(self, x, condition):
        parts = self.condition(F.silu(condition))[:, None].chunk(6, -1)
        queries, keys, values = self.enter(modulated(x, *parts[:2])).chunk(3, -1)
        x = x + parts[2] * self.leave(attention(*(split_heads(t, self.heads) for t in (queries, keys, values))))
        return x + parts[5] * self.feed(modulated(x, *parts[3:5]))


class Transformer(nn.Module):
    """Of patches of latents, a time step and a class (DiT)."""

    def __init__(self, width=1152, heads=16, layers=6, patch=2):
        super().__init__()
        self.patches = nn.Conv2d(4, width, patch, patch)
        self.time, self.labels = embedding(256, width), nn.Embedding(1000, width)
        self.places = nn.Parameter(torch.randn(1, 256, width))
        self.layers = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.condition, self.leave = nn.Linear(width, 2 * width), nn.Linear(width, 8 * patch * patch)

    def forward(self, x, time, labels):
        condition = self.time(waves(time, 256)) + self.labels(labels[:, 0])
        x = self.patches(x).flatten(2).transpose(1, 2) + self.places
        for layer in self.layers:
            x = layer(x, condition)
        x = self.leave(modulated(x, *self.condition(F.silu(condition))[:, None].chunk(2, -1)))
        x = x.unflatten(1, (16, 16)).unflatten(-1, (2, 2, 8))
        return x.permute(0, 5, 1, 3, 2, 4).flatten(4).flatten(2, 3)


class JointBlock(nn.Module):
    """Patches and words, each with weights of its own, attend to all of both (SD3)."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.conditions = nn.ModuleList(nn.Linear(width, 6 * width) for _ in range(2))
        self.enters = nn.ModuleList(nn.Linear(width, 3 * width) for _ in range(2))
        self.norms = nn.ModuleList(nn.RMSNorm(width // heads, eps=1e-6) for _ in range(4))
        self.leaves = nn.ModuleList(nn.Linear(width, width) for _ in range(2))
        self.feeds = nn.ModuleList(feed_forward(width) for _ in range(2))

    def forward(self, streams, condition):
        parts = [each(F.silu(condition))[:, None].chunk(6, -1) for each in self.conditions]
        projected = []
        for i, x in enumerate(streams):
            q, k, v = (split_heads(t, self.heads) for t in self.enters[i](modulated(x, *parts[i][:2])).chunk(3, -1))
            projected.append((self.norms[2 * i](q), self.norms[2 * i + 1](k), v))
        mixed = attention(*(torch.cat(both, 2) for both in zip(*projected)))
        mixed = mixed.split([x.shape[1] for x in streams], 1)
        results = []
        for i, x in enumerate(streams):
            x = x + parts[i][2] * self.leaves[i](mixed[i])
            results.append(x + parts[i][5] * self.feeds[i](modulated(x, *parts[i][3:5])))
        return results


class JointTransformer(nn.Module):
    def __init__(self, width=1536, heads=24, layers=4):
        super().__init__()
        self.patches, self.text = nn.Conv2d(16, width, 2, 2), nn.Linear(1536, width)
        self.time, self.pooled = embedding(256, width), embedding(2048, width)
        self.layers = nn.ModuleList(JointBlock(width, heads) for _ in range(layers))
        self.condition, self.leave = nn.Linear(width, 2 * width), nn.Linear(width, 64)

    def forward(self, x, text, time, pooled):
        condition = self.time(waves(time, 256)) + self.pooled(pooled)
        streams = [self.patches(x).flatten(2).transpose(1, 2), self.text(text)]
        for layer in self.layers:
            streams = layer(streams, condition)
        return self.leave(modulated(streams[0], *self.condition(F.silu(condition))[:, None].chunk(2, -1)))


class SingleBlock(nn.Module):
    """Attention with rotated keys beside a feed-forward layer of the same rows (Flux)."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads, self.width, self.condition = heads, width, nn.Linear(width, 3 * width)
        self.enter, self.leave = nn.Linear(width, 7 * width), nn.Linear(5 * width, width)
        self.norms = nn.ModuleList(nn.RMSNorm(width // heads, eps=1e-6) for _ in range(2))

    def forward(self, x, condition, angles):
        shift, scale, gate = self.condition(F.silu(condition))[:, None].chunk(3, -1)
        parts = self.enter(modulated(x, shift, scale)).split([self.width] * 3 + [4 * self.width], -1)
        queries, keys, values = (split_heads(t, self.heads) for t in parts[:3])
        queries, keys = rotated(self.norms[0](queries), angles), rotated(self.norms[1](keys), angles)
        mixed = attention(queries, keys, values)
        return x + gate * self.leave(torch.cat([mixed, F.gelu(parts[3], approximate="tanh")], -1))


class SingleStream(nn.Module):
    def __init__(self, width=1536, heads=12, layers=4):
        super().__init__()
        self.enter, self.text = nn.Linear(64, width), nn.Linear(4096, width)
        self.time, self.pooled = embedding(256, width), embedding(768, width)
        self.layers = nn.ModuleList(SingleBlock(width, heads) for _ in range(layers))
        self.leave, self.half = nn.Linear(width, 64), width // heads // 2

    def forward(self, x, text, time, pooled):
        condition = self.time(waves(time, 256)) + self.pooled(pooled)
        words = text.shape[1]
        x = torch.cat([self.text(text), self.enter(x)], 1)
        places = torch.arange(x.shape[1], device=x.device)[:, None].float()
        angles = (places * torch.exp(torch.arange(self.half, device=x.device) * (-9.21 / self.half))).to(x.dtype)
        for layer in self.layers:
            x = layer(x, condition, angles)
        return self.leave(F.layer_norm(x[:, words:], x.shape[-1:]))


class LinearBlock(nn.Module):
    """Attention by sums of products of keys and values, to a text, and convolutions that are gated (Sana)."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads, self.places = heads, nn.Parameter(torch.randn(6, width))
        self.enter, self.leave = nn.Linear(width, 3 * width, bias=False), nn.Linear(width, width)
        self.queries, self.keys = nn.Linear(width, width), nn.Linear(width, 2 * width)
        self.mixed = nn.Linear(width, width)
        inner = 5 * width // 2
        self.widen, self.narrow = nn.Conv2d(width, 2 * inner, 1), nn.Conv2d(inner, width, 1, bias=False)
        self.deep = nn.Conv2d(2 * inner, 2 * inner, 3, padding=1, groups=2 * inner)

    def forward(self, x, text, condition, size):
        parts = (self.places[None] + condition.unflatten(-1, (6, -1))).chunk(6, 1)
        q, k, v = (split_heads(t, self.heads) for t in self.enter(modulated(x, *parts[:2])).chunk(3, -1))
        q, k = F.relu(q), F.relu(k)
        values = F.pad(v, (0, 1), value=1.0).float()
        sums = q.float() @ (k.float().transpose(-1, -2) @ values)
        mixed = (sums[..., :-1] / (sums[..., -1:] + 1e-8)).to(x.dtype).transpose(1, 2).flatten(2)
        x = x + parts[2] * self.leave(mixed)
        keys, values = (split_heads(t, self.heads) for t in self.keys(text).chunk(2, -1))
        x = x + self.mixed(attention(split_heads(self.queries(x), self.heads), keys, values))
        y = modulated(x, *parts[3:5]).transpose(1, 2).unflatten(2, size)
        y, gate = self.deep(F.silu(self.widen(y))).chunk(2, 1)
        return x + parts[5] * self.narrow(y * F.silu(gate)).flatten(2).transpose(1, 2)


class LinearTransformer(nn.Module):
    def __init__(self, width=1152, heads=36, layers=4):
        super().__init__()
        self.enter, self.text = nn.Conv2d(32, width, 1), nn.Linear(2304, width)
        self.time, self.condition = embedding(256, width), nn.Linear(width, 6 * width)
        self.layers = nn.ModuleList(LinearBlock(width, heads) for _ in range(layers))
        self.leave = nn.Linear(width, 32)

    def forward(self, x, text, time):
        size = x.shape[2:]
        condition = self.condition(F.silu(self.time(waves(time, 256))))
        x, text = self.enter(x).flatten(2).transpose(1, 2), self.text(text)
        for layer in self.layers:
            x = layer(x, text, condition, size)
        return self.leave(F.layer_norm(x, x.shape[-1:])).transpose(1, 2).unflatten(2, size)
