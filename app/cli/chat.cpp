// chat: interactive and streaming, with the model's chat template.
#include <unistd.h>

#include <cstdio>
#include <iostream>

#include "app/cli/common.h"
#include "app/cli/sampling.h"
#include "engine/text/fit_context.h"
#include "kernels/error.h"

namespace recto::cli {
namespace {

struct ChatCommand {
    CommonOptions common;
    SamplingFlags sampling;
    std::string system;
    std::string context_end = "stop";
};

ContextEnd context_end_of(const std::string& name) {
    return name == "truncate"      ? ContextEnd::truncate
           : name == "drop-oldest" ? ContextEnd::drop_oldest
                                   : ContextEnd::stop;
}

constexpr const char* help_text =
    "/help          this list\n"
    "/system TEXT   set the system prompt and start anew\n"
    "/reset         forget the conversation\n"
    "/regenerate    answer the last message again\n"
    "/stats         blocks and speed\n"
    "/exit          leave (also Ctrl+D)\n"
    "A line that ends with \\ goes on in the next one. Ctrl+C stops an answer.\n";

class Conversation {
  public:
    Conversation(const ChatCommand& options, std::shared_ptr<const Model> model)
        : model_(std::move(model)),
          engine_(model_, engine_options(options.common)),
          context_end_(context_end_of(options.context_end)),
          show_hints_(isatty(STDIN_FILENO) != 0) {
        sampling_.max_tokens = std::nullopt;
        sampling_.temperature = 0.7;
        sampling_.top_p = 0.95;
        options.sampling.apply(sampling_);
        set_system(options.system);
    }

    // False at the end of input or after /exit.
    bool turn() {
        std::string line;
        if (!read_message(line)) return false;
        if (line.empty()) return true;
        if (line[0] == '/') return command(line);
        messages_.push_back({{"role", "user"}, {"content", line}});
        answer();
        return true;
    }

  private:
    bool read_message(std::string& message) {
        if (show_hints_) std::fputs("> ", stderr);
        std::string line;
        while (std::getline(std::cin, line)) {
            if (line.empty() || line.back() != '\\') {
                message += line;
                return true;
            }
            line.pop_back();
            message += line + '\n';
        }
        return !message.empty();
    }

    void set_system(const std::string& text) {
        messages_ = Json::array();
        if (!text.empty()) messages_.push_back({{"role", "system"}, {"content", text}});
        system_ = text;
    }

    bool command(const std::string& line) {
        if (line == "/exit" || line == "/quit") return false;
        if (line == "/help") {
            std::cout << help_text << std::flush;
        } else if (line == "/reset") {
            set_system(system_);
        } else if (line.rfind("/system ", 0) == 0) {
            set_system(line.substr(8));
        } else if (line == "/regenerate") {
            if (!messages_.empty() && messages_.back()["role"] == "assistant")
                messages_.erase(messages_.size() - 1);
            if (!messages_.empty() && messages_.back()["role"] == "user") answer();
        } else if (line == "/stats") {
            const EngineSnapshot s = engine_.snapshot();
            std::printf("KV blocks: %d used, %d cached, %d free of %d; prefix hits %llu of %llu tokens\n",
                        int(s.counts.used), int(s.counts.cached), int(s.counts.free), int(s.counts.total),
                        (unsigned long long)s.prefix_hits, (unsigned long long)s.prefix_queries);
        } else {
            std::cout << "unknown command " << line << "; /help lists them\n" << std::flush;
        }
        return true;
    }

    // Room for the answer: as many tokens as it may have, at most a quarter of the context.
    ContextLimit context_limit() const {
        const int context = engine_.max_model_len();
        return {context_end_, context,
                std::min(sampling_.max_tokens.value_or(context), std::max(1, context / 4))};
    }

    // What the model cannot be given any more leaves the conversation for good, so that the next turn begins
    // with what this one has in the cache.
    void forget(const FittedContext& fitted) {
        if (fitted.left_out_tokens == 0) return;
        for (auto i = fitted.left_out.rbegin(); i != fitted.left_out.rend(); ++i)
            messages_.erase(*i);
        std::fprintf(stderr, "[the context of %d tokens is full: left out %s, %d tokens]\n",
                     engine_.max_model_len(),
                     fitted.left_out.empty()
                         ? "the beginning of the prompt"
                         : ("the " + std::to_string(fitted.left_out.size()) + " oldest messages").c_str(),
                     fitted.left_out_tokens);
    }

    Request make_request() {
        TemplateOptions options;
        options.cancelled = interrupted;
        const Tokenizer& tokenizer = *model_->tokenizer;
        options.bos_token = tokenizer.spelling(tokenizer.bos());
        if (!tokenizer.eos().empty()) options.eos_token = tokenizer.spelling(tokenizer.eos().front());
        Request request;
        FittedContext fitted =
            fit_context(messages_, *model_->chat_template, options, tokenizer, context_limit());
        forget(fitted);
        request.prompt = std::move(fitted.ids);
        request.sampling = sampling_;
        request.owner = 1;
        return request;
    }

    void answer() {
        std::string text;
        RequestEvent last;
        try {
            const RequestId id = engine_.submit(make_request());
            bool cancelled = false;
            while (engine_.has_work()) {
                if (interrupted() && !cancelled) cancelled = engine_.cancel(id);
                for (RequestEvent& event : engine_.step()) {
                    text += event.text;
                    std::fputs(event.text.c_str(), stdout);
                    std::fflush(stdout);
                    if (event.request_finished) last = std::move(event);
                }
            }
        } catch (const Error& e) {  // the conversation goes on
            if (e.kind() == ErrorKind::cancelled) clear_interrupt();
            std::cout.flush();
            std::cerr << "recto-cli: " << e.what() << '\n';
            if (!messages_.empty() && messages_.back()["role"] == "user")
                messages_.erase(messages_.size() - 1);
            return;
        }
        clear_interrupt();
        std::fputs("\n", stdout);
        std::fflush(stdout);
        messages_.push_back({{"role", "assistant"}, {"content", text}});
        if (last.finish == FinishReason::error) std::cerr << "recto-cli: " << last.error << '\n';
        if (show_hints_) {
            const RequestMetrics& m = last.metrics;
            std::fprintf(stderr,
                         "[prompt %d (%d cached), first token %.0f ms, prefill %.0f tok/s, %d tokens at %.1f "
                         "tok/s, %s]\n",
                         m.prompt_tokens, m.cached_tokens, m.ttft_s() * 1000, m.prefill_tok_s(),
                         m.output_tokens, m.decode_tok_s(),
                         last.finish == FinishReason::length ? "context or max_tokens full"
                                                             : finish_reason_name(last.finish));
        }
    }

    std::shared_ptr<const Model> model_;
    Engine engine_;
    SamplingParams sampling_;
    Json messages_;
    std::string system_;
    ContextEnd context_end_;
    bool show_hints_ = false;
};

int run(const ChatCommand& options) {
    install_interrupt_handler();
    const auto model = load(options.common, make_backend(options.common));
    if (!model->tokenizer || !model->chat_template)
        throw Error(ErrorKind::input,
                    model->path.string() + ": expected a tokenizer and a chat template, found " +
                        (!model->tokenizer                    ? "no tokenizer"
                         : model->chat_template_error.empty() ? "no template"
                                                              : model->chat_template_error));
    if (isatty(STDIN_FILENO))
        std::fprintf(stderr, "%s. /help lists the commands.\n", model->config.name.c_str());
    Conversation conversation(options, model);
    while (!interrupted() && conversation.turn()) {
    }
    return interrupted() ? exit_interrupted : exit_done;
}

}  // namespace

void add_chat(CLI::App& app, int& code) {
    auto options = std::make_shared<ChatCommand>();
    CLI::App* command = app.add_subcommand("chat", "Talk with a model in the terminal");
    command->add_option("--system", options->system, "system prompt");
    command
        ->add_option(
            "--context-end", options->context_end,
            "when the conversation outgrows the context: stop, truncate (the prompt loses its beginning) "
            "or drop-oldest (whole turns are left out)")
        ->check(CLI::IsMember({"stop", "truncate", "drop-oldest"}));
    add_common_options(*command, options->common);
    options->sampling.add_to(*command);
    command->callback([options, &code] { code = run(*options); });
}

}  // namespace recto::cli
