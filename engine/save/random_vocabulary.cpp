#include "engine/save/random_vocabulary.h"

#include <cassert>

#include "engine/text/byte_map.h"

namespace recto {

namespace {

constexpr const char* kChatMl =
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + "
    "'<|im_end|>' + '\\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}"
    "{% endif %}";

class Builder {
  public:
    explicit Builder(int size) : size_(std::size_t(size)) {}

    bool full() const { return v_.tokens.size() == size_; }
    void add(std::string token, std::int32_t type) {
        v_.tokens.push_back(std::move(token));
        v_.types.push_back(type);
    }
    void merge(const std::string& left, const std::string& right) {
        if (full()) return;
        v_.merges.push_back(left + " " + right);
        add(left + right, 1);
    }
    TokenizerFiles::GgufVocabulary take() { return std::move(v_); }

  private:
    std::size_t size_;
    TokenizerFiles::GgufVocabulary v_;
};

}  // namespace

TokenizerFiles random_vocabulary(int size) {
    assert(size > 3 + 256 && size <= 3 + 256 + 26 + 676 + 676 * 676);
    Builder builder(size);
    for (const char* special : {"<|endoftext|>", "<|im_start|>", "<|im_end|>"})
        builder.add(special, 3);
    for (int byte = 0; byte < 256; ++byte)
        builder.add(bytes_to_map(std::string(1, char(byte))), 1);
    const std::string letters = "abcdefghijklmnopqrstuvwxyz";
    std::vector<std::string> pairs;
    for (const char a : letters)
        for (const char b : letters) {
            builder.merge(std::string(1, a), std::string(1, b));
            pairs.push_back({a, b});
        }
    for (const char a : letters)
        builder.merge(bytes_to_map(" "), std::string(1, a));
    for (const auto& left : pairs)
        for (const auto& right : pairs)
            builder.merge(left, right);

    TokenizerFiles files;
    auto v = builder.take();
    v.model = "gpt2";
    v.pre = "gpt-2";
    v.bos = 1;
    v.eos = 2;
    v.unknown = 0;
    v.padding = 0;
    files.gguf = std::move(v);
    files.chat_template = kChatMl;
    files.chat_template_source = "GGUF";
    files.label = "the made vocabulary";
    return files;
}

}  // namespace recto
