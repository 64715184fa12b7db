#include "engine/text/gguf_pre.h"

#include <map>

#include "engine/text/pre_tokenizer.h"
#include "kernels/error.h"

namespace recto {

namespace {

using Patterns = std::vector<std::string>;

// Llama 3's shape: contractions, a word with one leading sign, digits, signs with line ends, line ends,
// blanks. `digits` is what differs between families.
std::string llama3_shape(const std::string& digits) {
    return R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|)" + digits +
           R"(| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
}

// Words change at a change of case (tekken, GPT-4o); `ending` may add contractions.
std::string cased_shape(const std::string& ending, const std::string& digits) {
    return R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+)" + ending +
           R"(|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*)" + ending + "|" +
           digits + R"(| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
}

constexpr const char* kContraction = R"((?i:'s|'t|'re|'ve|'m|'ll|'d)?)";

const Patterns kLlama3 = {llama3_shape(R"(\p{N}{1,3})")};
const Patterns kQwen2 = {llama3_shape(R"(\p{N})")};
const Patterns kGpt2 = {kGpt2Pattern};
const Patterns kSingleDigits = {R"(\p{N})", kGpt2Pattern};
const Patterns kGpt4o = {cased_shape(kContraction, R"(\p{N}{1,3})")};
const Patterns kTekken = {cased_shape("", R"(\p{N})")};
// A run of blanks before anything else cannot end a word: said so, the search stays linear in the run's
// length.
constexpr const char* kBlanksAtEnd = R"((?<!\s)\s+\z)";
constexpr const char* kCjk = "[一-龥ࠀ-一가-퟿]+";

const Patterns kDeepseekLlm = {
    R"([\r\n])",
    "\\s?[A-Za-zµÀ-ÖØ-öø-ƺƼ-ƿǄ-ʓʕ-ʯͰ-ͳͶͷͻ-ͽͿΆΈ-ΊΌΎ-ΡΣ-ϵϷ-ҁҊ-ԯԱ-ՖႠ-ჅᎠ-Ᏽᏸ-ᏽᲐ-ᲺᲽ-Ჿᴀ-ᴫᵫ-ᵷᵹ-ᶚḀ-"
    "ἕἘ-"
    "Ἕἠ-ὅὈ-Ὅὐ-"
    "ὗὙὛὝὟ-ώᾀ-ᾴᾶ-ᾼιῂ-ῄῆ-ῌῐ-ΐῖ-Ίῠ-Ῥῲ-ῴῶ-ῼℂℇℊ-ℓℕℙ-ℝℤΩℨK-ℭℯ-ℴℹℼ-ℿⅅ-ⅉⅎↃↄⰀ-ⱻⱾ-ⳤⳫ-ⳮⲲⳳꙀ-ꙭꚀ-ꚛꜢ-ꝯꝱ-ꞇꞋ-ꞎꭰ-"
    "ꮿﬀ-"
    "ﬆﬓ-"
    "ﬗＡ-Ｚａ-ｚ𐐀-𐑏𐒰-𐓓𐓘-𐓻𐲀-𐲲𐳀-𐳲𑢠-𑣟𞤀-𞥃]+",
    "\\s?[!-/:-~！-／：-～‘-‟　-。]+",
    kBlanksAtEnd,
    kCjk,
    R"(\p{N}+)",
};
const Patterns kDeepseekCoder = {R"([\r\n])", R"(\s?\p{L}+)", R"(\s?\p{P}+)", kCjk, R"(\p{N})"};
const Patterns kDeepseekV3 = {
    R"(\p{N}{1,3})",
    "[一-龥぀-ゟ゠-ヿ]+",
    R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
};
const Patterns kFalcon = {R"([\p{P}$+<=>^`|~]+)", kGpt2Pattern, "[0-9][0-9][0-9]"};
const Patterns kDefault = {R"([\p{P}$+<=>^|~]+)", kGpt2Pattern, R"(\p{N}+)", "[0-9][0-9][0-9]"};

const std::map<std::string, GgufPreTokenizer>& table() {
    static const std::map<std::string, GgufPreTokenizer> kTable = [] {
        std::map<std::string, GgufPreTokenizer> t;
        const auto add = [&t](std::initializer_list<const char*> names, const GgufPreTokenizer& pre) {
            for (const char* name : names)
                t.emplace(name, pre);
        };
        add({"llama3", "llama-v3", "llama-bpe", "falcon3", "falcon-h1", "pixtral", "midm-2.0", "lfm2"},
            {kLlama3, true, false});
        add({"dbrx", "smaug-bpe"}, {kLlama3, false, false});
        add({"qwen2"}, {kQwen2, false, true});
        add({"deepseek-r1-qwen", "megrez"}, {kQwen2, false, false});
        add({"stablelm2"}, {kQwen2, false, false});
        add({"smollm", "starcoder", "refact", "command-r", "codeshell", "minerva-7b", "exaone"},
            {kSingleDigits, false, false});
        add({"gpt-2", "phi-2", "jina-es", "jina-de", "gigachat", "jina-v2-es", "jina-v2-de", "a.x-4.0",
             "mellum", "mpt", "olmo", "jais"},
            {kGpt2, false, false});
        add({"gpt-4o", "llama4"}, {kGpt4o, false, false});
        add({"tekken"}, {kTekken, true, false});
        add({"deepseek-llm"}, {kDeepseekLlm, false, false});
        add({"deepseek-coder"}, {kDeepseekCoder, false, false});
        add({"deepseek-v3"}, {kDeepseekV3, false, false});
        add({"falcon"}, {kFalcon, false, false});
        add({"default"}, {kDefault, false, false});
        return t;
    }();
    return kTable;
}

}  // namespace

GgufPreTokenizer gguf_pre_tokenizer(const std::string& name, const std::string& label) {
    const auto found = table().find(name);
    if (found != table().end()) return found->second;
    std::string known;
    for (const auto& [key, value] : table())
        known += (known.empty() ? "" : ", ") + key;
    throw Error(ErrorKind::input, label + ": expected a known pre-tokenizer in tokenizer.ggml.pre (" + known +
                                      "), found " + (name.empty() ? "none" : "\"" + name + "\"") +
                                      ": use a newer conversion or a tokenizer.json of this model.");
}

}  // namespace recto
