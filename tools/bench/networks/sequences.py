"""Convolutions and recurrent networks over time."""

import torch
import torch.nn.functional as F
from torch import nn


class WaveNet(nn.Module):
    """Gated dilated convolutions whose skipped results are summed."""

    def __init__(self, channels=128, skipped=256, layers=20):
        super().__init__()
        self.enter = nn.Conv1d(64, channels, 1)
        self.dilated = nn.ModuleList(
            nn.Conv1d(channels, 2 * channels, 2, dilation=2**(i % 10)) for i in range(layers))
        self.mixed = nn.ModuleList(nn.Conv1d(channels, channels + skipped, 1) for _ in range(layers))
        self.leave = nn.Sequential(nn.ReLU(), nn.Conv1d(skipped, skipped, 1), nn.ReLU(), nn.Conv1d(skipped, 256, 1))
        self.sizes = [channels, skipped]

    def forward(self, x):
        x, total = self.enter(x), 0
        for dilated, mixed in zip(self.dilated, self.mixed):
            value, gate = dilated(F.pad(x, (dilated.dilation[0], 0))).chunk(2, 1)
            kept, skipped = mixed(torch.tanh(value) * torch.sigmoid(gate)).split(self.sizes, 1)
            x, total = x + kept, total + skipped
        return self.leave(total)


class CausalConvolutions(nn.Module):
    """Two causal dilated convolutions beside each residual (TCN)."""

    def __init__(self, channels=128, layers=8, kernel=3):
        super().__init__()
        self.enter, self.kernel = nn.Conv1d(64, channels, 1), kernel
        self.layers = nn.ModuleList(
            nn.ModuleList(nn.Conv1d(channels, channels, kernel, dilation=2**i) for _ in range(2))
            for i in range(layers))
        self.leave = nn.Linear(channels, 10)

    def forward(self, x):
        x = self.enter(x)
        for i, pair in enumerate(self.layers):
            y = x
            for convolution in pair:
                y = F.relu(convolution(F.pad(y, ((self.kernel - 1) * 2**i, 0))))
            x = F.relu(x + y)
        return self.leave(x[:, :, -1])


class ConvolutionalLstm(nn.Module):
    """Frames of images through two recurrent layers whose products are convolutions."""

    def __init__(self, channels=64):
        super().__init__()
        self.channels = channels
        self.cells = nn.ModuleList(nn.Conv2d(e + channels, 4 * channels, 3, padding=1) for e in (16, channels))
        self.leave = nn.Conv2d(channels, 16, 1)

    def forward(self, x):
        zeros = x.new_zeros(x.shape[0], self.channels, *x.shape[3:])
        states = [(zeros, zeros) for _ in self.cells]
        for step in range(x.shape[1]):
            y = x[:, step]
            for i, cell in enumerate(self.cells):
                entering, forget, leaving, new = cell(torch.cat([y, states[i][0]], 1)).chunk(4, 1)
                kept = torch.sigmoid(forget) * states[i][1] + torch.sigmoid(entering) * torch.tanh(new)
                y = torch.sigmoid(leaving) * torch.tanh(kept)
                states[i] = (y, kept)
        return self.leave(y)


class TextRecognition(nn.Module):
    """Convolutions over a line of text and two recurrent layers in both directions (CRNN)."""

    def __init__(self):
        super().__init__()
        layers, now = [], 1
        for width, pool in [(64, 2), (128, 2), (256, None), (256, (2, 1)), (512, None), (512, (2, 1))]:
            layers += [nn.Conv2d(now, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU()]
            layers += [nn.MaxPool2d(pool)] if pool else []
            now = width
        self.layers = nn.Sequential(*layers, nn.Conv2d(512, 512, 2), nn.ReLU())
        self.recurrent = nn.LSTM(512, 256, num_layers=2, bidirectional=True, batch_first=True)
        self.leave = nn.Linear(512, 6000)

    def forward(self, x):
        x = self.layers(x).squeeze(2).transpose(1, 2)
        return F.log_softmax(self.leave(self.recurrent(x)[0]), -1)


class SpeechBlock(nn.Module):
    def __init__(self, width, inner, kernel):
        super().__init__()
        self.attention = nn.MultiheadAttention(width, 2, batch_first=True)
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2))
        self.widen, self.narrow = nn.Conv1d(width, inner, kernel, padding=kernel // 2), nn.Conv1d(inner, width, 1)

    def forward(self, x):
        x = self.norms[0](x + self.attention(x, x, x, need_weights=False)[0])
        return self.norms[1](x + self.narrow(F.relu(self.widen(x.transpose(1, 2)))).transpose(1, 2))


class FastSpeech(nn.Module):
    """Phonemes to frames: each lasts four."""

    def __init__(self, width=384, layers=4):
        super().__init__()
        self.embedding = nn.Embedding(80, width)
        self.encoder = nn.ModuleList(SpeechBlock(width, 1536, 9) for _ in range(layers))
        self.pitch = nn.Sequential(nn.Conv1d(width, 256, 3, padding=1), nn.ReLU(), nn.Conv1d(256, 1, 1))
        self.raised = nn.Conv1d(1, width, 9, padding=4)
        self.decoder = nn.ModuleList(SpeechBlock(width, 1536, 9) for _ in range(layers))
        self.leave = nn.Linear(width, 80)

    def forward(self, tokens):
        x = self.embedding(tokens)
        for layer in self.encoder:
            x = layer(x)
        x = x + self.raised(self.pitch(x.transpose(1, 2))).transpose(1, 2)
        x = x.repeat_interleave(4, 1)
        for layer in self.decoder:
            x = layer(x)
        return self.leave(x)


class Tacotron(nn.Module):
    """Convolutions, a recurrent layer, and frames one by one with attention to the places attended before."""

    def __init__(self, width=512):
        super().__init__()
        self.embedding = nn.Embedding(80, width)
        self.convolutions = nn.ModuleList(nn.Conv1d(width, width, 5, padding=2) for _ in range(3))
        self.encoder = nn.LSTM(width, width // 2, bidirectional=True, batch_first=True)
        self.enter = nn.Sequential(nn.Linear(80, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU())
        self.cells = nn.ModuleList([nn.LSTMCell(256 + width, 1024), nn.LSTMCell(1024 + width, 1024)])
        self.query, self.memory = nn.Linear(1024, 128, bias=False), nn.Linear(width, 128, bias=False)
        self.places, self.placed = nn.Conv1d(2, 32, 31, padding=15, bias=False), nn.Linear(32, 128, bias=False)
        self.score, self.leave = nn.Linear(128, 1, bias=False), nn.Linear(1024 + width, 80)
        self.after = nn.ModuleList(nn.Conv1d(80 if i == 0 else width, 80 if i == 4 else width, 5, padding=2)
                                   for i in range(5))

    def forward(self, tokens, frames):
        x = self.embedding(tokens).transpose(1, 2)
        for convolution in self.convolutions:
            x = F.relu(convolution(x))
        encoded = self.encoder(x.transpose(1, 2))[0]
        memory, entering = self.memory(encoded), self.enter(frames)
        batch, count = tokens.shape
        states = [(encoded.new_zeros(batch, 1024), encoded.new_zeros(batch, 1024)) for _ in range(2)]
        weights = total = encoded.new_zeros(batch, count)
        context, results = encoded.new_zeros(batch, encoded.shape[-1]), []
        for step in range(frames.shape[1]):
            states[0] = self.cells[0](torch.cat([entering[:, step], context], -1), states[0])
            placed = self.placed(self.places(torch.stack([weights, total], 1)).transpose(1, 2))
            scores = self.score(torch.tanh(self.query(states[0][0])[:, None] + memory + placed))[..., 0]
            weights = scores.softmax(-1)
            total = total + weights
            context = (weights[:, None] @ encoded)[:, 0]
            states[1] = self.cells[1](torch.cat([states[0][0], context], -1), states[1])
            results.append(self.leave(torch.cat([states[1][0], context], -1)))
        y = x = torch.stack(results, 2)
        for i, convolution in enumerate(self.after):
            y = convolution(y) if i == 4 else torch.tanh(convolution(y))
        return x + y
