"""Networks that no library of the table has, in PyTorch."""

import torch
import torch.nn.functional as F
from torch import nn

GROUPS = 32


class ResidualBlock(nn.Module):
    """Two convolutions behind group norms, with a vector of the time step added between them."""

    def __init__(self, channels, out, time):
        super().__init__()
        self.norm1, self.conv1 = nn.GroupNorm(GROUPS, channels), nn.Conv2d(channels, out, 3, padding=1)
        self.time = nn.Linear(time, out)
        self.norm2, self.conv2 = nn.GroupNorm(GROUPS, out), nn.Conv2d(out, out, 3, padding=1)
        self.skip = nn.Conv2d(channels, out, 1) if channels != out else nn.Identity()

    def forward(self, x, time):
        y = self.conv1(F.silu(self.norm1(x))) + self.time(F.silu(time))[:, :, None, None]
        return self.skip(x) + self.conv2(F.silu(self.norm2(y)))


class ContextBlock(nn.Module):
    """Attention of pixels to each other and to a text, and a gated feed-forward layer."""

    def __init__(self, channels, heads, text):
        super().__init__()
        self.heads = heads
        self.norm, self.enter = nn.GroupNorm(GROUPS, channels), nn.Conv2d(channels, channels, 1)
        self.norms = nn.ModuleList(nn.LayerNorm(channels) for _ in range(3))
        self.queries = nn.ModuleList(nn.Linear(channels, channels, bias=False) for _ in range(2))
        self.keys = nn.ModuleList(nn.Linear(c, 2 * channels, bias=False) for c in (channels, text))
        self.outs = nn.ModuleList(nn.Linear(channels, channels) for _ in range(2))
        self.gated, self.down = nn.Linear(channels, 8 * channels), nn.Linear(4 * channels, channels)
        self.leave = nn.Conv2d(channels, channels, 1)

    def attention(self, queries, keys, values):
        batch, count, channels = queries.shape
        split = lambda t: t.view(batch, -1, self.heads, channels // self.heads).transpose(1, 2)
        result = F.scaled_dot_product_attention(split(queries), split(keys), split(values))
        return result.transpose(1, 2).reshape(batch, count, channels)

    def forward(self, x, text):
        batch, channels, height, width = x.shape
        y = self.enter(self.norm(x)).permute(0, 2, 3, 1).reshape(batch, height * width, channels)
        for i in range(2):
            z = self.norms[i](y)
            keys, values = self.keys[i](text if i else z).chunk(2, -1)
            y = y + self.outs[i](self.attention(self.queries[i](z), keys, values))
        value, gate = self.gated(self.norms[2](y)).chunk(2, -1)
        y = y + self.down(value * F.gelu(gate))
        return x + self.leave(y.reshape(batch, height, width, channels).permute(0, 3, 1, 2))


class DiffusionUNet(nn.Module):
    """Of latents, a time step and a text: three levels of two blocks."""

    def __init__(self, channels=320, text=768):
        super().__init__()
        self.channels, time, widths = channels, 4 * channels, [channels, 2 * channels, 4 * channels]
        self.embedding = nn.Sequential(nn.Linear(channels, time), nn.SiLU(), nn.Linear(time, time))
        self.enter = nn.Conv2d(4, channels, 3, padding=1)
        self.down, self.up, kept, now = nn.ModuleList(), nn.ModuleList(), [channels], channels
        block = lambda inner, out: [ResidualBlock(inner, out, time), ContextBlock(out, 8, text)]
        for level, width in enumerate(widths):
            for _ in range(2):
                self.down.append(nn.ModuleList(block(now, width)))
                now = width
                kept.append(now)
            if level < 2:
                self.down.append(nn.ModuleList([nn.Conv2d(now, now, 3, 2, 1)]))
                kept.append(now)
        self.middle = nn.ModuleList(block(now, now) + [ResidualBlock(now, now, time)])
        for level, width in reversed(list(enumerate(widths))):
            for i in range(3):
                grows = [nn.Conv2d(width, width, 3, padding=1)] if i == 2 and level > 0 else []
                self.up.append(nn.ModuleList(block(now + kept.pop(), width) + grows))
                now = width
        self.norm, self.leave = nn.GroupNorm(GROUPS, channels), nn.Conv2d(channels, 4, 3, padding=1)

    def forward(self, x, time, text):
        half = self.channels // 2
        angles = time[:, None].float() * torch.exp(torch.arange(half, device=x.device) * (-9.21 / half))
        time = self.embedding(torch.cat([angles.cos(), angles.sin()], -1).to(x.dtype))
        x = self.enter(x)
        kept = [x]
        for part in self.down:
            x = part[1](part[0](x, time), text) if len(part) == 2 else part[0](x)
            kept.append(x)
        x = self.middle[2](self.middle[1](self.middle[0](x, time), text), time)
        for part in self.up:
            x = part[1](part[0](torch.cat([x, kept.pop()], 1), time), text)
            if len(part) == 3:
                x = part[2](F.interpolate(x, scale_factor=2.0, mode="nearest"))
        return self.leave(F.silu(self.norm(x)))


class LatentDecoder(nn.Module):
    """From latents to an image of eight times their size."""

    def __init__(self, channels=128, time=8):
        super().__init__()
        widths, now = [4 * channels, 4 * channels, 2 * channels, channels], 4 * channels
        self.enter, self.levels = nn.Conv2d(4, now, 3, padding=1), nn.ModuleList()
        for level, width in enumerate(widths):
            grows = [nn.Conv2d(width, width, 3, padding=1)] if level < 3 else []
            blocks = [ResidualBlock(now, width, time), ResidualBlock(width, width, time)]
            self.levels.append(nn.ModuleList(blocks + grows))
            now = width
        self.norm, self.leave = nn.GroupNorm(GROUPS, now), nn.Conv2d(now, 3, 3, padding=1)

    def forward(self, x, time):
        x = self.enter(x)
        for level in self.levels:
            x = level[1](level[0](x, time), time)
            if len(level) == 3:
                x = level[2](F.interpolate(x, scale_factor=2.0, mode="nearest"))
        return self.leave(F.silu(self.norm(x)))


class Mixer(nn.Module):
    """Feed-forward layers over patches and over channels in turn."""

    def __init__(self, width=768, patches=196, layers=12):
        super().__init__()
        self.patches = nn.Conv2d(3, width, 16, 16)
        layer = lambda size, inner: nn.ModuleList([nn.LayerNorm(width), nn.Linear(size, inner), nn.Linear(inner, size)])
        self.layers = nn.ModuleList(
            nn.ModuleList([layer(patches, 384), layer(width, 4 * width)]) for _ in range(layers))
        self.head = nn.Linear(width, 1000)

    def forward(self, x):
        x = self.patches(x).flatten(2).transpose(1, 2)
        for (norm, up, down), (norm2, up2, down2) in self.layers:
            x = x + down(F.gelu(up(norm(x).transpose(1, 2)))).transpose(1, 2)
            x = x + down2(F.gelu(up2(norm2(x))))
        return self.head(x.mean(1))


class TemporalConvolutions(nn.Module):
    """Separates sounds: dilated depthwise convolutions between group norms of all channels."""

    def __init__(self, channels=512, layers=24):
        super().__init__()
        wide = 2 * channels
        self.enter = nn.Conv1d(512, channels, 1)
        self.layers = nn.ModuleList(
            nn.Sequential(nn.Conv1d(channels, wide, 1), nn.PReLU(), nn.GroupNorm(1, wide),
                          nn.Conv1d(wide, wide, 3, padding=2**(i % 8), dilation=2**(i % 8), groups=wide), nn.PReLU(),
                          nn.GroupNorm(1, wide), nn.Conv1d(wide, channels, 1)) for i in range(layers))

    def forward(self, x):
        x = self.enter(x)
        for layer in self.layers:
            x = x + layer(x)
        return x


class Detector(torch.nn.Module):
    """A detector of torchvision on one image: the scores, as boxes of almost equal scores change places by rounding."""

    def __init__(self, network):
        super().__init__()
        self.network = network

    def forward(self, x):
        return self.network([x[0]])[0]["scores"]
