// "Better answers": which models fit this machine, by size class. Only families that load are named.
#pragma once
#include <QString>
#include <cstdint>
#include <vector>

namespace recto::ui {

struct ModelSuggestion {
    QString name;                // "Qwen2.5 1.5B Instruct"
    QString build;               // "Q4_K_M"
    std::uint64_t file_bytes;    // about
    std::uint64_t needed_bytes;  // about, with a context of a few thousand tokens
    bool fits = false;
};

struct SizeClass {
    QString title;  // "1 to 2 billion"
    QString use;    // what to expect
    std::vector<ModelSuggestion> models;
    bool fits = false;  // at least one does
};

std::vector<SizeClass> size_classes(std::uint64_t free_bytes);

// Memory a new program could take now (Linux: MemAvailable); 0 when unknown.
std::uint64_t available_memory();

}  // namespace recto::ui
