"""Networks of graphs, points, rays, volumes and tables."""

import torch
import torch.nn.functional as F
from torch import nn


def layers(*sizes):
    parts = []
    for entering, leaving in zip(sizes, sizes[1:]):
        parts += [nn.Linear(entering, leaving), nn.ReLU()]
    return nn.Sequential(*parts[:-1])


class GraphNetwork(nn.Module):
    """Messages along edges, summed at their ends."""

    def __init__(self, width=128, rounds=6):
        super().__init__()
        self.enter = nn.Linear(64, width)
        self.messages = nn.ModuleList(layers(3 * width, width, width) for _ in range(rounds))
        self.updates = nn.ModuleList(layers(2 * width, width, width) for _ in range(rounds))
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2 * rounds))

    def forward(self, nodes, edges, ends):
        edges, (sources, targets) = self.enter(edges), ends
        for i, (message, update) in enumerate(zip(self.messages, self.updates)):
            edges = edges + self.norms[2 * i](message(torch.cat([nodes[sources], nodes[targets], edges], -1)))
            sums = torch.zeros_like(nodes).index_add(0, targets, edges)
            nodes = nodes + self.norms[2 * i + 1](update(torch.cat([nodes, sums], -1)))
        return nodes


class GraphAttention(nn.Module):
    """Softmax over the edges that end at a node (GAT)."""

    def __init__(self, width=256, heads=8, rounds=3):
        super().__init__()
        self.heads = heads
        self.enters = nn.ModuleList(nn.Linear(width, width) for _ in range(rounds))
        self.scores = nn.ModuleList(nn.Linear(width, 2 * heads) for _ in range(rounds))

    def forward(self, nodes, ends):
        sources, targets = ends
        spread = targets[:, None].expand(-1, self.heads)
        for enter, score in zip(self.enters, self.scores):
            values, parts = enter(nodes), score(nodes).chunk(2, -1)
            scores = F.leaky_relu(parts[0][sources] + parts[1][targets], 0.2)
            none = scores.new_full((nodes.shape[0], self.heads), -6e4)
            most = none.scatter_reduce(0, spread, scores, "amax")
            weights = torch.exp(scores - most[targets])
            sums = torch.zeros_like(none).scatter_add(0, spread, weights)
            weights = weights / (sums[targets] + 1e-4)
            mixed = values[sources].unflatten(-1, (self.heads, -1)) * weights[..., None]
            nodes = F.elu(torch.zeros_like(values).index_add(0, targets, mixed.flatten(1)))
        return nodes


class PointNet(nn.Module):
    """The same layers at each point and their greatest results, with a turn that is found likewise."""

    def __init__(self, size=3):
        super().__init__()
        self.turns = nn.ModuleList(self.stack(channels) for channels in (size, 64))
        self.heads = nn.ModuleList(layers(1024, 512, 256, channels**2) for channels in (size, 64))
        self.first, self.second = nn.Conv1d(size, 64, 1), self.stack(64)
        self.head = layers(1024, 512, 256, 40)

    @staticmethod
    def stack(channels):
        parts = []
        for entering, leaving in [(channels, 64), (64, 128), (128, 1024)]:
            parts += [nn.Conv1d(entering, leaving, 1), nn.BatchNorm1d(leaving), nn.ReLU()]
        return nn.Sequential(*parts)

    def turned(self, x, i):
        turn = self.heads[i](self.turns[i](x).amax(-1)).unflatten(-1, (x.shape[1], -1))
        turn = turn + torch.eye(x.shape[1], device=x.device, dtype=x.dtype)
        return (x.transpose(1, 2) @ turn).transpose(1, 2)

    def forward(self, x):
        x = self.turned(F.relu(self.first(self.turned(x, 0))), 1)
        return F.log_softmax(self.head(self.second(x).amax(-1)), -1)


class PointNeighbours(nn.Module):
    """Layers over the differences to the nearest points, chosen anew in each (DGCNN)."""

    def __init__(self, neighbours=20):
        super().__init__()
        self.neighbours, widths = neighbours, [3, 64, 64, 128]
        self.layers = nn.ModuleList(nn.Conv2d(2 * a, b, 1) for a, b in zip(widths, widths[1:]))
        self.leave, self.head = nn.Conv1d(256, 1024, 1), layers(1024, 256, 40)

    def forward(self, x):
        kept = []
        for layer in self.layers:
            inner = 2 * x.transpose(1, 2) @ x
            squares = (x * x).sum(1)
            near = (inner - squares[:, :, None] - squares[:, None]).topk(self.neighbours, -1).indices
            rows = x.transpose(1, 2)
            picked = torch.gather(rows[:, :, None].expand(-1, -1, self.neighbours, -1), 1,
                                  near[..., None].expand(-1, -1, -1, rows.shape[-1]))
            middle = rows[:, :, None].expand_as(picked)
            edges = torch.cat([picked - middle, middle], -1).permute(0, 3, 1, 2)
            x = F.leaky_relu(layer(edges), 0.2).amax(-1)
            kept.append(x)
        return self.head(F.leaky_relu(self.leave(torch.cat(kept, 1)), 0.2).amax(-1))


class RadianceField(nn.Module):
    """Colours of rays: layers at waves of each place, and sums along the ray by what light passes (NeRF)."""

    def __init__(self, width=256, waves=10):
        super().__init__()
        self.waves = waves
        entering = 6 * waves + 3
        self.first = nn.ModuleList(nn.Linear(entering if i == 0 else width, width) for i in range(5))
        self.second = nn.ModuleList(nn.Linear(width + entering if i == 0 else width, width) for i in range(3))
        self.density, self.feature = nn.Linear(width, 1), nn.Linear(width, width)
        self.colour = layers(width + 27, width // 2, 3)

    @staticmethod
    def waved(x, count):
        angles = x[..., None] * 2.0**torch.arange(count, device=x.device, dtype=x.dtype)
        return torch.cat([x, angles.sin().flatten(-2), angles.cos().flatten(-2)], -1)

    def forward(self, rays, depths):
        depths = depths.abs().cumsum(-1) / depths.shape[-1]
        origin, way = rays[:, None, :3], rays[:, None, 3:]
        places = self.waved(origin + way * depths[..., None], self.waves)
        x = places
        for layer in self.first:
            x = F.relu(layer(x))
        x = torch.cat([x, places], -1)
        for layer in self.second:
            x = F.relu(layer(x))
        density = F.relu(self.density(x))[..., 0]
        ways = self.waved(F.normalize(way, dim=-1), 4).expand(-1, depths.shape[1], -1)
        colours = torch.sigmoid(self.colour(torch.cat([self.feature(x), ways], -1)))
        lengths = F.pad(depths[:, 1:] - depths[:, :-1], (0, 1), value=1.0)
        blocked = density * lengths
        passed = torch.exp(-(blocked.cumsum(-1) - blocked))
        weights = passed * (1 - torch.exp(-blocked))
        return (weights[..., None] * colours).sum(1)


class VolumeUNet(nn.Module):
    """Convolutions of volumes with instance norms, four levels."""

    def __init__(self, channels=32, levels=4):
        super().__init__()
        widths = [channels * 2**i for i in range(levels)]
        self.down = nn.ModuleList(self.block(a, b) for a, b in zip([1] + widths, widths))
        self.grow = nn.ModuleList(nn.ConvTranspose3d(2 * w, w, 2, 2) for w in reversed(widths[:-1]))
        self.up = nn.ModuleList(self.block(2 * w, w) for w in reversed(widths[:-1]))
        self.leave = nn.Conv3d(channels, 4, 1)

    @staticmethod
    def block(entering, leaving):
        parts = []
        for first in (entering, leaving):
            parts += [nn.Conv3d(first, leaving, 3, padding=1), nn.InstanceNorm3d(leaving, affine=True), nn.LeakyReLU()]
        return nn.Sequential(*parts)

    def forward(self, x):
        kept = []
        for i, block in enumerate(self.down):
            x = block(F.max_pool3d(x, 2) if i > 0 else x)
            kept.append(x)
        kept.pop()
        for grow, block in zip(self.grow, self.up):
            x = block(torch.cat([grow(x), kept.pop()], 1))
        return self.leave(x)


class Recommender(nn.Module):
    """Rows of tables and their products with each other (DLRM)."""

    def __init__(self, tables=26, width=64):
        super().__init__()
        self.tables = nn.ModuleList(nn.Embedding(10000, width) for _ in range(tables))
        self.dense = layers(13, 512, 256, width)
        pairs = (tables + 1) * tables // 2
        self.head = layers(pairs + width, 1024, 512, 256, 1)
        self.register_buffer("upper", torch.triu_indices(tables + 1, tables + 1, 1))

    def forward(self, dense, sparse):
        x = F.relu(self.dense(dense))
        rows = torch.stack([x] + [table(sparse[:, i]) for i, table in enumerate(self.tables)], 1)
        inner = rows @ rows.transpose(1, 2)
        pairs = inner[:, self.upper[0], self.upper[1]]
        return torch.sigmoid(self.head(torch.cat([x, pairs], -1)))
