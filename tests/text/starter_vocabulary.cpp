#include "starter_vocabulary.h"

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <map>
#include <sstream>
#include <stdexcept>

namespace recto::test {

namespace {

// Just enough of a GGUF reader for metadata: the tests of this room do not lean on the loader's.
class Reader {
  public:
    explicit Reader(const std::string& path) : file_(path, std::ios::binary) {
        if (!file_) throw std::runtime_error("cannot open " + path);
    }
    template <class T>
    T get() {
        T value{};
        file_.read(reinterpret_cast<char*>(&value), sizeof value);
        if (!file_) throw std::runtime_error("truncated GGUF");
        return value;
    }
    std::string text() {
        std::string out(get<std::uint64_t>(), '\0');
        file_.read(out.data(), static_cast<std::streamsize>(out.size()));
        return out;
    }
    // Calls back once for a value, once an element for an array: (type, raw bytes or text).
    void value(std::uint32_t type, const std::function<void(const std::string&)>& use) {
        static const std::map<std::uint32_t, int> kBytes = {{0, 1}, {1, 1}, {2, 2},  {3, 2},  {4, 4}, {5, 4},
                                                            {6, 4}, {7, 1}, {10, 8}, {11, 8}, {12, 8}};
        if (type == 8) return use(text());
        if (type == 9) {
            const auto element = get<std::uint32_t>();
            const auto count = get<std::uint64_t>();
            for (std::uint64_t i = 0; i < count; ++i)
                value(element, use);
            return;
        }
        std::string raw(static_cast<std::size_t>(kBytes.at(type)), '\0');
        file_.read(raw.data(), static_cast<std::streamsize>(raw.size()));
        use(raw);
    }

  private:
    std::ifstream file_;
};

std::int32_t as_int(const std::string& raw) {
    std::int32_t value = 0;
    std::memcpy(&value, raw.data(), std::min(raw.size(), sizeof value));
    return value;
}

}  // namespace

TokenizerFiles starter_files() {
    const char* path = std::getenv("RECTO_STARTER_MODEL");
    if (path == nullptr)
        throw std::runtime_error("RECTO_STARTER_MODEL is not set: it names the starter model's GGUF file");
    Reader reader(path);
    if (reader.get<std::uint32_t>() != 0x46554747) throw std::runtime_error("not a GGUF file");
    reader.get<std::uint32_t>();
    reader.get<std::uint64_t>();
    const auto count = reader.get<std::uint64_t>();
    TokenizerFiles files;
    files.label = path;
    auto& gguf = files.gguf.emplace();
    for (std::uint64_t i = 0; i < count; ++i) {
        const std::string key = reader.text();
        const auto type = reader.get<std::uint32_t>();
        reader.value(type, [&](const std::string& raw) {
            if (key == "tokenizer.ggml.model") gguf.model = raw;
            if (key == "tokenizer.ggml.pre") gguf.pre = raw;
            if (key == "tokenizer.ggml.tokens") gguf.tokens.push_back(raw);
            if (key == "tokenizer.ggml.merges") gguf.merges.push_back(raw);
            if (key == "tokenizer.ggml.token_type") gguf.types.push_back(as_int(raw));
            if (key == "tokenizer.ggml.bos_token_id") gguf.bos = as_int(raw);
            if (key == "tokenizer.ggml.eos_token_id") gguf.eos = as_int(raw);
            if (key == "tokenizer.ggml.add_bos_token") gguf.add_bos = raw[0] != 0;
        });
    }
    return files;
}

std::string stored_text(const std::string& name) {
    std::ifstream file(std::string(RECTO_TEST_DATA) + "/text/" + name, std::ios::binary);
    if (!file) throw std::runtime_error("no test data " + name);
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
}

nlohmann::json stored(const std::string& name) {
    return nlohmann::json::parse(stored_text(name));
}

std::uint32_t hash_of_ids(const std::vector<std::int32_t>& ids) {
    std::uint64_t h = 0xCBF29CE484222325ULL;
    std::string text;
    for (const auto id : ids)
        text += (text.empty() ? "" : ",") + std::to_string(id);
    for (const char c : text)
        h = (h ^ static_cast<unsigned char>(c)) * 0x100000001B3ULL;
    return static_cast<std::uint32_t>(h);
}

std::string from_hex(const std::string& hex) {
    std::string out;
    for (std::size_t i = 0; i + 1 < hex.size(); i += 2)
        out.push_back(static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16)));
    return out;
}

}  // namespace recto::test
