// Four prompts, one call: what loading takes and what generating takes, apart.
//     offline_generate MODEL [awq|gptq|…]
#include <chrono>
#include <cstdio>
#include <iostream>

#include "engine/llm.h"
#include "kernels/error.h"

int main(int argc, char** argv) try {
    if (argc < 2) return std::fputs("usage: offline_generate MODEL [QUANTIZATION]\n", stderr), 2;
    recto::LLM llm(argv[1], {.quantization = argc > 2 ? argv[2] : "auto"});
    const std::vector<std::string> prompts{"Hello, my name is", "The president of the United States is",
                                           "The capital of France is", "The future of AI is"};
    const auto start = std::chrono::steady_clock::now();
    const auto outputs = llm.generate(prompts, {.temperature = 0.8, .top_p = 0.95});
    const std::chrono::duration<double> generation = std::chrono::steady_clock::now() - start;
    for (const auto& o : outputs)
        std::cout << "Prompt: " << o.prompt << "\nGenerated text: " << o.outputs[0].text << "\n\n";
    std::cout << "load time: " << llm.load_seconds() << " s\ngeneration time: " << generation.count()
              << " s\n";
    return 0;
} catch (const recto::Error& e) {
    std::cerr << "offline_generate: " << e.what() << '\n';
    return 1;
}
