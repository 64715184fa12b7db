"""OpenVINO GenAI (PyPI openvino-genai) as a side of the comparison; see sides.py for the protocol.

It reads the GGUF file itself. Settings: latency hint, all cores, and its continuous batching scheduler, which was
faster than its stateful pipeline for one sequence too; prefix caching off, so that every prompt is computed.
"""
import time

import sides

with sides.imports():
    import numpy
    import openvino
    import openvino_genai as genai


class OpenVino:
    name = "OpenVINO GenAI " + genai.__version__.split("-")[0]

    def __init__(self, model, threads):
        scheduler = genai.SchedulerConfig()
        scheduler.cache_size, scheduler.enable_prefix_caching, scheduler.max_num_batched_tokens = 1, False, 512
        self.pipeline = genai.LLMPipeline(model, "CPU", scheduler_config=scheduler, PERFORMANCE_HINT="LATENCY",
                                          INFERENCE_NUM_THREADS=threads)
        self.warm = False

    def run(self, sequences, prompt, output, seed):
        """Wall seconds, and the pipeline's own measures."""
        config = genai.GenerationConfig()
        config.max_new_tokens = config.min_new_tokens = output
        config.ignore_eos, config.do_sample = True, False
        shape = sequences, prompt
        ids = numpy.random.default_rng(seed).integers(1000, 30000, shape, dtype=numpy.int64)
        inputs = genai.TokenizedInputs(openvino.Tensor(ids), openvino.Tensor(numpy.ones(shape, dtype=numpy.int64)))
        start = time.perf_counter()
        result = self.pipeline.generate(inputs, config)
        return time.perf_counter() - start, result.perf_metrics

    def warmed(self):
        if not self.warm:
            self.run(1, 64, 8, 1)
        self.warm = True

    def first_token(self):
        self.run(1, 16, 1, 0)

    def decode_1(self, seed):
        self.warmed()
        return {"decode_1": 1e3 / self.run(1, 128, 64, seed)[1].get_tpot().mean}

    def prefill_512(self, seed):
        self.warmed()
        return {"prefill_512": 512e3 / self.run(1, 512, 1, seed)[1].get_ttft().mean}

    def eight(self, seed):
        self.warmed()
        all_of_it = self.run(8, 128, 64, seed)[0]
        first = self.run(8, 128, 1, seed + 100)[0]
        return {"decode_8": 8 * 63 / (all_of_it - first), "total_8": 8 * 64 / all_of_it}

    def depth(self, seed):
        self.warmed()
        return {"depth": 1e3 / self.run(1, 4096, 24, seed)[1].get_tpot().mean}


sides.serve(OpenVino)
