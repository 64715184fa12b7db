#include "engine/save/convert.h"

#include "engine/load/json_reader.h"
#include "engine/load/mapped_file.h"
#include "engine/save/config_writer.h"
#include "engine/save/dense_tensors.h"
#include "engine/save/tokenizer_writer.h"

namespace recto {

namespace {

namespace fs = std::filesystem;

// Whatever a tokenizer of transformers may consist of.
constexpr const char* tokenizer_files[] = {
    "tokenizer.json",
    "tokenizer.model",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "vocab.json",
    "merges.txt",
    "chat_template.jinja",
};

bool is_file(const fs::path& path) {
    std::error_code error;
    return fs::is_regular_file(path, error);
}

void copy_if_there(const fs::path& folder, const char* name, OutputFolder& out) {
    if (is_file(folder / name)) out.write(name, read_text_file(folder / name));
}

std::string text_of(const ConfigJson& json) {
    return json.dump(2) + "\n";
}

void write_gguf_tokenizer(const ModelSource& source, OutputFolder& out, ConvertReport& report) {
    if (!source.has_tokenizer()) {
        report.tokenizer_left_out = "the file has none";
        return;
    }
    const SavedTokenizer saved = saved_tokenizer(source.tokenizer_files(), source.config().max_position);
    for (const auto& [name, content] : saved.files)
        out.write(name, content);
    report.tokenizer_left_out = saved.reason;
}

void write_small_files(const ModelSource& source, const SavedBiases& biases, SaveType type, OutputFolder& out,
                       ConvertReport& report) {
    const fs::path original = source.path() / "config.json";
    if (source.format() == "GGUF") {
        write_gguf_tokenizer(source, out, report);
        out.write("generation_config.json",
                  text_of(generation_config_json(source.config(), source.generation_defaults())));
        out.write("config.json", text_of(config_json(source.config(), biases, type, source.path().string())));
        return;
    }
    for (const char* name : tokenizer_files)
        copy_if_there(source.path(), name, out);
    if (!source.has_tokenizer()) report.tokenizer_left_out = "the folder has none";
    copy_if_there(source.path(), "generation_config.json", out);
    const auto json = parse_json(read_text_file(original), original.string());
    out.write("config.json", text_of(changed_config_json(json, source.config(), type, original.string())));
}

}  // namespace

ConvertReport convert_model(const ModelSource& source, const fs::path& path, SaveType type,
                            const SaveProgress& progress) {
    const SavedBiases biases = biases_of(source);
    if (source.format() == "GGUF")  // refused before anything is written
        (void)config_json(source.config(), biases, type, source.path().string());
    OutputFolder out(path);
    ConvertReport report;
    auto tensors = dense_tensors(source, biases, type);
    for (const auto& tensor : tensors)
        report.weight_bytes += save_bytes(tensor);
    write_safetensors(out, std::move(tensors), progress);
    write_small_files(source, biases, type, out, report);
    out.commit();
    return report;
}

}  // namespace recto
