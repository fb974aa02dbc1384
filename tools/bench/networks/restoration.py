"""Networks that make images of images or of styles."""

import torch
import torch.nn.functional as F
from torch import nn


class DenseBlock(nn.Module):
    """Five convolutions, each of the results of all before it."""

    def __init__(self, channels, growth):
        super().__init__()
        self.layers = nn.ModuleList(
            nn.Conv2d(channels + i * growth, channels if i == 4 else growth, 3, padding=1) for i in range(5))

    def forward(self, x):
        kept = [x]
        for i, layer in enumerate(self.layers):
            y = layer(torch.cat(kept, 1))
            kept.append(y if i == 4 else F.leaky_relu(y, 0.2))
        return x + 0.2 * kept[-1]


class DenseResidual(nn.Module):
    """An image four times as large (ESRGAN)."""

    def __init__(self, channels=64, growth=32, blocks=4):
        super().__init__()
        self.enter = nn.Conv2d(3, channels, 3, padding=1)
        self.blocks = nn.ModuleList(
            nn.Sequential(*(DenseBlock(channels, growth) for _ in range(3))) for _ in range(blocks))
        self.middle = nn.Conv2d(channels, channels, 3, padding=1)
        self.grow = nn.ModuleList(nn.Conv2d(channels, 4 * channels, 3, padding=1) for _ in range(2))
        self.leave = nn.Conv2d(channels, 3, 3, padding=1)

    def forward(self, x):
        x = y = self.enter(x)
        for block in self.blocks:
            y = y + 0.2 * block(y)
        x = x + self.middle(y)
        for grow in self.grow:
            x = F.leaky_relu(F.pixel_shuffle(grow(x), 2), 0.2)
        return self.leave(x)


class StyledConvolution(nn.Module):
    """Filters scaled by a style and brought to unit norm, for each image its own."""

    def __init__(self, entering, leaving, styles=512):
        super().__init__()
        self.filters, self.style = nn.Parameter(torch.randn(leaving, entering, 3, 3)), nn.Linear(styles, entering)
        self.bias = nn.Parameter(torch.zeros(leaving))

    def forward(self, x, style):
        batch, channels, height, width = x.shape
        filters = self.filters[None] * (1 + self.style(style))[:, None, :, None, None]
        filters = filters * torch.rsqrt(filters.float().square().sum([2, 3, 4], keepdim=True) + 1e-8).to(x.dtype)
        y = F.conv2d(x.reshape(1, -1, height, width), filters.flatten(0, 1), padding=1, groups=batch)
        return F.leaky_relu(y.reshape(batch, -1, height, width) + self.bias[:, None, None], 0.2)


class StyleGenerator(nn.Module):
    """From a constant to an image, with a style for each convolution (StyleGAN)."""

    def __init__(self, widths=(512, 512, 512, 512, 256, 128, 64)):
        super().__init__()
        self.start = nn.Parameter(torch.randn(1, widths[0], 4, 4))
        self.layers = nn.ModuleList(
            nn.ModuleList([StyledConvolution(a, b), StyledConvolution(b, b)]) for a, b in zip(widths, widths[1:]))
        self.images = nn.ModuleList(nn.Conv2d(b, 3, 1) for b in widths[1:])

    def forward(self, styles):
        x, result = self.start.expand(styles.shape[0], -1, -1, -1), None
        for i, (first, second) in enumerate(self.layers):
            x = F.interpolate(x, scale_factor=2.0, mode="bilinear", align_corners=False)
            x = second(first(x, styles[:, 2 * i]), styles[:, 2 * i + 1])
            part = self.images[i](x)
            larger = result if result is None else F.interpolate(result, scale_factor=2.0, mode="bilinear",
                                                                 align_corners=False)
            result = part if larger is None else larger + part
        return result
