// template: messages through a chat template, as text.
#include <iostream>

#include "app/cli/common.h"
#include "engine/json_text.h"
#include "engine/load/json_reader.h"
#include "kernels/error.h"

namespace recto::cli {
namespace {

struct TemplateCommand {
    CommonOptions common;  // only the model and --json matter here; a script may pass the rest along
    std::string messages, template_file, bos, eos;
    bool bos_given = false, eos_given = false, no_generation_prompt = false;
    std::vector<std::string> variables;
};

void check_messages(const Json& messages, const std::string& file) {
    if (!messages.is_array())
        throw Error(ErrorKind::input,
                    file + ": expected an array of messages, found " + messages.type_name());
    for (const Json& m : messages)
        if (!m.is_object() || !m.contains("role"))
            throw Error(
                ErrorKind::input,
                file + R"(: expected messages like {"role": …, "content": …}, found )" + json_text(m));
}

int run(const TemplateCommand& o) {
    TemplateOptions options;
    options.add_generation_prompt = !o.no_generation_prompt;
    std::string source;
    if (!o.template_file.empty()) source = read_file(o.template_file);
    // The model's own template and special tokens; with --template and both tokens given no model is needed.
    if (o.template_file.empty() || !o.common.model.empty()) {
        const TokenizerFiles files = open_tokenizer_files(model_path(o.common));
        if (o.template_file.empty()) source = files.chat_template;
        if (source.empty())
            throw Error(ErrorKind::input,
                        files.label + ": expected a chat template, found none; give one with --template");
        const auto tokenizer = make_tokenizer(files);
        options.bos_token = tokenizer->spelling(tokenizer->bos());
        if (!tokenizer->eos().empty()) options.eos_token = tokenizer->spelling(tokenizer->eos().front());
    }
    if (o.bos_given) options.bos_token = o.bos;
    if (o.eos_given) options.eos_token = o.eos;
    for (const std::string& variable : o.variables) {
        const std::size_t equals = variable.find('=');
        const Json value = equals == std::string::npos ? Json() : parse_value(variable.substr(equals + 1));
        if (equals == std::string::npos || value.is_discarded())
            throw Error(ErrorKind::argument, "--var must be NAME=JSON, got " + variable);
        options.variables[variable.substr(0, equals)] = value;
    }
    const Json messages = parse_json(read_file(o.messages), o.messages);
    check_messages(messages, o.messages);
    const std::string text = ChatTemplate(source).render_text(messages, options);
    if (o.common.json)
        std::cout << json_text(Json{{"text", text}}) << '\n';
    else
        std::cout << text;
    return exit_done;
}

}  // namespace

void add_template(CLI::App& app, int& code) {
    auto options = std::make_shared<TemplateCommand>();
    CLI::App* command = app.add_subcommand("template", "Render messages with a chat template");
    command
        ->add_option("--messages", options->messages,
                     R"(file: [{"role": …, "content": …}, …]; - is standard input)")
        ->required();
    command->add_option("--template", options->template_file, "a Jinja file; left out: the model's own");
    add_common_options(*command, options->common);
    command->add_flag("--no-generation-prompt", options->no_generation_prompt,
                      "do not open the assistant's turn");
    auto* bos = command->add_option("--bos-token", options->bos, "spelling of bos_token");
    auto* eos = command->add_option("--eos-token", options->eos, "spelling of eos_token");
    command->add_option("--var", options->variables, "NAME=JSON for the template (repeatable)")
        ->allow_extra_args(false);
    command->callback([=, &code] {
        options->bos_given = bos->count() > 0;
        options->eos_given = eos->count() > 0;
        code = run(*options);
    });
}

}  // namespace recto::cli
