"""Transformers and recurrent networks of tokens."""

from rows import BASE, CAUSAL, CODER, SMALL, hf, ones, pair, pixels, prompt, random, text, tokens, traced

NARROW = dict(hidden_size=1024, num_hidden_layers=4, num_attention_heads=16, vocab_size=32000)
GATED = dict(NARROW, num_key_value_heads=4, intermediate_size=4096)
EXPERTS = dict(NARROW, num_key_value_heads=4, num_experts_per_tok=2, experts_implementation="eager")
LATENT = dict(NARROW, intermediate_size=4096, q_lora_rank=512, kv_lora_rank=256, qk_nope_head_dim=128,
              qk_rope_head_dim=64, v_head_dim=128, first_k_dense_replace=4)
CODERS = dict(encoder_layers=6, decoder_layers=6, vocab_size=32000, **CODER)

ENCODERS = {
    "distilbert": hf("DistilBert", text()),
    "albert": hf("Albert", text(), hidden_size=768, num_attention_heads=12, intermediate_size=3072),
    "deberta2": hf("DebertaV2", text(4), relative_attention=True, pos_att_type=["c2p", "p2c"], position_buckets=256,
                   norm_rel_ebd="layer_norm", share_att_key=True, **BASE),
    "mpnet": hf("MPNet", text()),
    "xlnet": hf("XLNet", prompt(256, 4), d_model=768, n_layer=12, n_head=12, d_inner=3072),
    "convbert": hf("ConvBert", text()),
    "mobilebert": hf("MobileBert", text()),
    "roformer": hf("RoFormer", text()),
    "modernbert": hf("ModernBert", text(4, 1024)),
    "squeezebert": hf("SqueezeBert", text()),
    "nystrom": hf("Nystromformer", text(8, 512), max_position_embeddings=520),
    "funnel": hf("Funnel", text(4), block_sizes=[4, 4, 4], d_model=768, n_head=12, d_head=64, d_inner=3072),
    "longformer": traced(hf("Longformer", text(1, 2048), attention_window=256, max_position_embeddings=2052, **BASE)),
    "bigbird": hf("BigBird", prompt(2048), attention_type="block_sparse", max_position_embeddings=2048, **BASE),
    "reformer": hf("Reformer", prompt(2048), attn_layers=["local"] * 6, hidden_size=512, num_attention_heads=8,
                   attention_head_size=64, feed_forward_size=2048, axial_pos_embds=False, is_decoder=False,
                   local_attn_chunk_length=64, max_position_embeddings=2048, vocab_size=32000),
    "canine": hf("Canine", {"input_ids": tokens(2, 2048, 1000)}),
    "layoutlmv3": hf("LayoutLMv3", {**text(4), "bbox": tokens(4, 256, 1000, 4), **pixels(4)}),
    "luke": hf("Luke", {**text(8), "entity_ids": tokens(8, 16, 1000), "entity_position_ids": tokens(8, 16, 250, 30)}),
    "perceiver": hf("Perceiver", {"inputs": random(1, 2048, 768)}, num_latents=256, d_latents=1280),
    "yoso": hf("Yoso", text(4, 512), use_expectation=True, max_position_embeddings=520),
    "esm": hf("Esm", {"input_ids": tokens(4, 512, 30), "attention_mask": ones(4, 512)}, vocab_size=33, mask_token_id=32,
              pad_token_id=1, position_embedding_type="rotary", hidden_size=1280, num_hidden_layers=8,
              num_attention_heads=20, intermediate_size=5120),
    "xmod": hf("Xmod", text(8), languages=["en_XX"], default_language="en_XX", vocab_size=32000),
}

DECODERS = {
    "opt": hf("OPT", prompt(), CAUSAL, ffn_dim=3072, hidden_size=768, num_attention_heads=12, num_hidden_layers=12),
    "bloom": hf("Bloom", prompt(), CAUSAL, vocab_size=50000, hidden_size=1024, n_layer=12, n_head=16),
    "gptneox": hf("GPTNeoX", prompt(), CAUSAL, **BASE),
    "gptneo": hf("GPTNeo", prompt(), CAUSAL, hidden_size=768, num_layers=12, num_heads=12,
                 attention_types=[[["global", "local"], 6]]),
    "falcon": hf("Falcon", prompt(), CAUSAL, vocab_size=32000, **SMALL),
    "gemma3": hf("Gemma3", prompt(2048), CAUSAL, "Gemma3Text", hidden_size=1152, intermediate_size=6912,
                 num_hidden_layers=12, num_attention_heads=4, num_key_value_heads=1, head_dim=256, sliding_window=512,
                 vocab_size=32000),
    "phi": hf("Phi", prompt(), CAUSAL, intermediate_size=4096, **SMALL),
    "olmo2": hf("Olmo2", prompt(), CAUSAL, intermediate_size=4096, vocab_size=32000, **SMALL),
    "mamba": hf("Mamba", prompt(64), CAUSAL, num_hidden_layers=4),
    "mamba2": hf("Mamba2", prompt(512), CAUSAL, hidden_size=1024, num_hidden_layers=4, num_heads=32, head_dim=64,
                 state_size=128, n_groups=1, chunk_size=128, vocab_size=32000),
    "rwkv": hf("Rwkv", prompt(32), CAUSAL, hidden_size=1024, num_hidden_layers=4, vocab_size=32000),
    "griffin": hf("RecurrentGemma", prompt(64), CAUSAL, hidden_size=1024, num_hidden_layers=3, num_attention_heads=8,
                  intermediate_size=6144, lru_width=1024, vocab_size=32000, attention_window_size=512),
    "stablelm": hf("StableLm", prompt(), CAUSAL, use_parallel_residual=True, qk_layernorm=True, **GATED),
    "qwen3": hf("Qwen3", prompt(), CAUSAL, head_dim=128, **GATED),
    "diffllama": hf("DiffLlama", prompt(), CAUSAL, **GATED),
    "doge": hf("Doge", prompt(), CAUSAL, **GATED),
    "deepseek3": hf("DeepseekV3", prompt(), CAUSAL, **LATENT),
    "minicpm3": hf("MiniCPM3", prompt(), CAUSAL, q_lora_rank=512, kv_lora_rank=256, qk_nope_head_dim=64,
                   qk_rope_head_dim=32, v_head_dim=64, intermediate_size=4096, **NARROW),
    "lfm2": hf("Lfm2", prompt(), CAUSAL, layer_types=["conv", "conv", "full_attention", "conv"], **GATED),
    "zamba2": hf("Zamba2", prompt(256), CAUSAL, hidden_size=1024, num_hidden_layers=4, num_attention_heads=16,
                 vocab_size=32000, mamba_d_state=64, mamba_headdim=64, chunk_size=128, n_mamba_heads=32,
                 layers_block_type=["mamba", "hybrid", "mamba", "mamba"], hybrid_layer_ids=[1], num_mem_blocks=1),
    "mixtral": traced(hf("Mixtral", text(1, 512), CAUSAL, num_local_experts=8, intermediate_size=2048, **EXPERTS)),
    "gpt_oss": traced(hf("GptOss", prompt(512), CAUSAL, num_local_experts=8, intermediate_size=1024, head_dim=64,
                          sliding_window=128, **EXPERTS)),
}

BOTH = {
    "t5": hf("T5", pair(), "ForConditionalGeneration", d_model=768, d_kv=64, d_ff=3072, num_layers=12, num_heads=12),
    "bart": hf("Bart", pair(), encoder_layers=6, decoder_layers=6, **CODER),
    "whisper": hf("Whisper", {"input_features": random(1, 80, 3000), "decoder_input_ids": tokens(1, 64)},
                  encoder_layers=12, decoder_layers=12, **CODER),
    # A mixture of experts whose tokens are picked by NonZero.
    "switch": traced(hf("SwitchTransformers", {"input_ids": tokens(4, 256)}, "EncoderModel", num_experts=8)),
    "led": traced(hf("LED", {**pair(1, 2048), "attention_mask": ones(1, 2048)}, attention_window=256,
              max_encoder_position_embeddings=2048, **CODERS)),
    "longt5": traced(hf("LongT5", pair(1, 2048), num_layers=4, d_model=768, d_kv=64, d_ff=2048, num_heads=12,
                 encoder_attention_type="transient-global", vocab_size=32000)),
}

NETWORKS = {**ENCODERS, **DECODERS, **BOTH}
