#include "ui/better_answers_dialog.h"

#include <QDesktopServices>
#include <QDir>
#include <QGridLayout>
#include <QLabel>
#include <QPushButton>
#include <QScrollArea>
#include <QUrl>
#include <QVBoxLayout>

#include "ui/format.h"
#include "ui/model_sizes.h"
#include "ui/theme/theme.h"

namespace recto::ui {
namespace {

QLabel* make_label(const QString& text, const QFont& font, QWidget* parent, bool dim = false) {
    auto* label = new QLabel(text, parent);
    label->setFont(font);
    label->setWordWrap(true);
    label->setProperty("dim", dim);
    label->setTextInteractionFlags(Qt::TextSelectableByMouse | Qt::TextSelectableByKeyboard);
    return label;
}

QWidget* make_table(const Theme* theme, const std::vector<SizeClass>& classes, QWidget* parent) {
    auto* table = new QWidget(parent);
    auto* grid = new QGridLayout(table);
    grid->setContentsMargins(0, 0, 0, 0);
    grid->setHorizontalSpacing(16);
    grid->setVerticalSpacing(4);
    grid->setColumnStretch(0, 1);
    const Palette& p = theme->palette();
    int row = 0;
    for (const SizeClass& c : classes) {
        auto* title = make_label(c.title, p.fonts.strong, table);
        grid->addWidget(title, row, 0, 1, 3);
        if (row > 0) grid->setRowMinimumHeight(row, QFontMetrics(p.fonts.strong).height() + 10);
        grid->addWidget(make_label(c.use, p.fonts.small, table, true), ++row, 0, 1, 3);
        for (const ModelSuggestion& m : c.models) {
            ++row;
            grid->addWidget(make_label(QStringLiteral("%1, %2").arg(m.name, m.build), p.fonts.note, table),
                            row, 0);
            auto* need =
                make_label(BetterAnswersDialog::tr("needs about %1").arg(format_bytes(m.needed_bytes)),
                           p.fonts.note, table, true);
            need->setWordWrap(false);
            grid->addWidget(need, row, 1);
            auto* verdict =
                make_label(m.fits ? BetterAnswersDialog::tr("✓ fits") : BetterAnswersDialog::tr("too large"),
                           p.fonts.note, table, !m.fits);
            verdict->setWordWrap(false);
            grid->addWidget(verdict, row, 2);
        }
        ++row;
    }
    return table;
}

}  // namespace

BetterAnswersDialog::BetterAnswersDialog(const Theme* theme, std::uint64_t free_bytes,
                                         const QString& models_folder, QWidget* parent)
    : QDialog(parent) {
    setObjectName(QStringLiteral("better_answers_dialog"));
    setWindowTitle(tr("Better answers"));
    setAttribute(Qt::WA_DeleteOnClose);
    const Palette& p = theme->palette();
    auto* content = new QWidget;
    auto* column = new QVBoxLayout(content);
    column->setContentsMargins(20, 16, 20, 16);
    column->setSpacing(10);
    column->addWidget(make_label(tr("Better answers"), p.fonts.heading, content));
    column->addWidget(make_label(
        tr("The starter model is small and made for trying things out. Larger models answer much better. "
           "These families load: Llama, Mistral, Mixtral, SmolLM, Qwen, Gemma, Phi, OLMo and Granite, as a GGUF "
           "file or as a Hugging Face folder, quantized ones included."),
        p.fonts.body, content));
    column->addWidget(
        make_label(free_bytes > 0 ? tr("Memory free on this machine now: %1.").arg(format_bytes(free_bytes))
                                  : tr("How much memory is free on this machine is not known."),
                   p.fonts.strong, content));
    column->addWidget(make_table(theme, size_classes(free_bytes), content));
    column->addWidget(make_label(tr("How they get here"), p.fonts.strong, content));
    column->addWidget(make_label(tr("1. Search the model's name with “GGUF” on a site that hosts models, for "
                                    "instance Hugging Face, and download "
                                    "one file with your browser. Q4_K_M is a good size; Q8_0 is closer to "
                                    "the original and twice as large.\n"
                                    "2. Drop the file, or a folder with config.json and safetensors, on "
                                    "Recto's window. Before it loads you see "
                                    "how much memory it needs.\n"
                                    "3. Keep it wherever you like: models are used where they are and never "
                                    "copied. A good place is the folder "
                                    "%1.")
                                     .arg(QDir::toNativeSeparators(models_folder)),
                                 p.fonts.body, content));
    column->addStretch(1);

    auto* scroll = new QScrollArea(this);
    scroll->setFrameShape(QFrame::NoFrame);
    scroll->setWidgetResizable(true);
    scroll->setWidget(content);
    auto* file = new QPushButton(tr("Open model file…"), this);
    file->setObjectName(QStringLiteral("better_open_file"));
    auto* folder = new QPushButton(tr("Open model folder…"), this);
    folder->setObjectName(QStringLiteral("better_open_folder"));
    auto* close = new QPushButton(tr("Close"), this);
    close->setObjectName(QStringLiteral("better_close"));
    close->setDefault(true);
    connect(file, &QPushButton::clicked, this, [this] {
        accept();
        Q_EMIT open_file_wanted();
    });
    connect(folder, &QPushButton::clicked, this, [this] {
        accept();
        Q_EMIT open_folder_wanted();
    });
    connect(close, &QPushButton::clicked, this, &QDialog::reject);
    auto* buttons = new QHBoxLayout;
    buttons->setContentsMargins(20, 0, 20, 16);
    buttons->addWidget(file);
    buttons->addWidget(folder);
    buttons->addStretch(1);
    buttons->addWidget(close);
    auto* outer = new QVBoxLayout(this);
    outer->setContentsMargins(0, 0, 0, 0);
    outer->addWidget(scroll, 1);
    outer->addLayout(buttons);
    resize(int(620 * p.zoom), 640);
}

}  // namespace recto::ui
