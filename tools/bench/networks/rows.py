"""What a row of the tables of networks is made of."""

import typing

import torch

import modules


class Network(typing.NamedTuple):
    """A function that makes the module, those that make its inputs on a device, and how it is exported."""

    make: typing.Callable
    inputs: dict
    traced: bool = False  # by the exporter that traces, whose files have sizes that depend on data
    half: bool = True  # in fp16


def random(*shape):
    return lambda device: torch.randn(*shape, device=device, dtype=torch.float16)


def tokens(batch, count, vocabulary=20000, *inner):
    return lambda device: torch.randint(3, vocabulary, (batch, count, *inner), device=device)


def indices(batch, count, bound):
    return lambda device: torch.randint(0, bound, (batch, count), device=device)


def ones(batch, count):
    return lambda device: torch.ones(batch, count, dtype=torch.long, device=device)


def text(batch=8, count=256):
    return {"input_ids": tokens(batch, count), "attention_mask": ones(batch, count)}


def prompt(count=1024, batch=1):
    return {"input_ids": tokens(batch, count)}


def pixels(batch=8, size=224):
    return {"pixel_values": random(batch, 3, size, size)}


def image(batch=8, size=224):
    return {"x": random(batch, 3, size, size)}


def pair(batch=4, count=256, outputs=64):
    return {"input_ids": tokens(batch, count), "decoder_input_ids": tokens(batch, outputs)}


def sound():
    return {"input_values": random(1, 160000)}


def hf(name, inputs, kind="Model", config=None, **options):
    """A class of the Transformers library with the options of its configuration."""

    def make():
        import transformers

        return getattr(transformers, name + kind)(getattr(transformers, (config or name) + "Config")(**options))

    return Network(make, inputs)


def traced(network):
    return network._replace(traced=True)


def vision(name, inputs=None, **options):
    """A model of torchvision."""

    def make():
        import torchvision.models

        function = torchvision.models
        for part in name.split("."):
            function = getattr(function, part)
        return function(weights=None, **options)

    return Network(make, inputs or image())


def detector(name, size, **options):
    """A detector of torchvision in fp32, with scores low enough that it finds as much as it returns at most."""

    def make():
        import torchvision.models.detection

        network = getattr(torchvision.models.detection, name)(weights=None, weights_backbone=None, **options)
        return modules.Detector(network.eval())

    return Network(make, {"x": lambda device: torch.rand(1, 3, size, size, device=device)}, traced=True, half=False)


def timm(name, inputs):
    def make():
        import timm as library

        return library.create_model(name, pretrained=False)

    return Network(make, inputs)


BASE = dict(hidden_size=768, num_hidden_layers=12, num_attention_heads=12, intermediate_size=3072)
SMALL = dict(hidden_size=1024, num_hidden_layers=8, num_attention_heads=16)
CAUSAL = "ForCausalLM"
CODER = dict(encoder_attention_heads=12, decoder_attention_heads=12, encoder_ffn_dim=3072, decoder_ffn_dim=3072,
             d_model=768)
