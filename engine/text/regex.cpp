#include "engine/text/regex.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <array>

#include "engine/text/oniguruma.h"
#include "kernels/error.h"

namespace recto {

namespace {

std::string pcre2_message(int code) {
    std::array<PCRE2_UCHAR, 256> buffer{};
    pcre2_get_error_message(code, buffer.data(), buffer.size());
    return reinterpret_cast<const char*>(buffer.data());
}

// Backtracking over a long run needs more than the machine stack that compiled code uses by itself (32 KiB).
constexpr std::size_t kJitStackStart_bytes = 256U << 10U;
constexpr std::size_t kJitStackMax_bytes = 64U << 20U;

}  // namespace

struct Regex::Code {
    pcre2_code* code = nullptr;
    bool compiled = false;  // to machine code; otherwise PCRE2 interprets
    ~Code() { pcre2_code_free(code); }
};

Regex::Regex(const std::string& pattern, const std::string& label, bool multiline)
    : code_(std::make_unique<Code>()) {
    int error = 0;
    PCRE2_SIZE offset = 0;
    const std::uint32_t options = PCRE2_UTF | PCRE2_UCP | (multiline ? PCRE2_MULTILINE : 0U);
    const std::string translated = oniguruma_to_pcre2(pattern, label);
    code_->code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(translated.data()), translated.size(), options,
                                &error, &offset, nullptr);
    if (code_->code == nullptr)
        throw Error(ErrorKind::input, label + ": expected a pre-tokenizer pattern, found \"" + pattern +
                                          "\", which fails at character " + std::to_string(offset) + ": " +
                                          pcre2_message(error) + ".");
    code_->compiled = pcre2_jit_compile(code_->code, PCRE2_JIT_COMPLETE) == 0;
}

Regex::~Regex() = default;
Regex::Regex(Regex&&) noexcept = default;
Regex& Regex::operator=(Regex&&) noexcept = default;

struct Regex::Matcher::Scratch {
    const Code* code;
    pcre2_match_data* data = nullptr;
    pcre2_match_context* context = nullptr;
    pcre2_jit_stack* stack = nullptr;

    explicit Scratch(const Code* c) : code(c), data(pcre2_match_data_create_from_pattern(c->code, nullptr)) {
        if (data == nullptr) throw Error(ErrorKind::memory, "Not enough memory to split a text into words.");
    }
    ~Scratch() {
        pcre2_match_data_free(data);
        pcre2_match_context_free(context);
        pcre2_jit_stack_free(stack);
    }
    Scratch(const Scratch&) = delete;
    Scratch& operator=(const Scratch&) = delete;

    int run(std::string_view subject, std::size_t from) {
        const auto* text = reinterpret_cast<PCRE2_SPTR>(subject.data());
        int result = 0;
        if (code->compiled) {
            result =
                pcre2_jit_match(code->code, text, subject.size(), from, PCRE2_NO_UTF_CHECK, data, context);
            if (result == PCRE2_ERROR_JIT_STACKLIMIT && stack == nullptr) {
                grow_stack();
                result = pcre2_jit_match(code->code, text, subject.size(), from, PCRE2_NO_UTF_CHECK, data,
                                         context);
            }
            if (result != PCRE2_ERROR_JIT_STACKLIMIT) return result;
        }
        return pcre2_match(code->code, text, subject.size(), from, PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT, data,
                           context);
    }
    void grow_stack() {
        context = pcre2_match_context_create(nullptr);
        stack = pcre2_jit_stack_create(kJitStackStart_bytes, kJitStackMax_bytes, nullptr);
        if (context == nullptr || stack == nullptr)
            throw Error(ErrorKind::memory, "Not enough memory to split a text into words.");
        pcre2_jit_stack_assign(context, nullptr, stack);
    }
};

Regex::Matcher::Matcher(const Regex& regex) : scratch_(std::make_unique<Scratch>(regex.code_.get())) {}
Regex::Matcher::~Matcher() = default;

bool Regex::Matcher::find(std::string_view subject, std::size_t from) {
    const int result = scratch_->run(subject, from);
    if (result == PCRE2_ERROR_NOMATCH) return false;
    if (result == PCRE2_ERROR_NOMEMORY || result == PCRE2_ERROR_HEAPLIMIT)
        throw Error(ErrorKind::memory, "Not enough memory to split a text into words.");
    if (result < 0)
        throw Error(ErrorKind::runtime, "The model's pre-tokenizer pattern gave up on this text of " +
                                            std::to_string(subject.size()) + " bytes (" +
                                            pcre2_message(result) + "): shorten the text.");
    const PCRE2_SIZE* range = pcre2_get_ovector_pointer(scratch_->data);
    begin = range[0];
    end = range[1];
    return true;
}

}  // namespace recto
