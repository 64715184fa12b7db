#include "ui/memory_dialog.h"

#include <QGridLayout>
#include <QLabel>
#include <QPushButton>
#include <QVBoxLayout>

#include "ui/format.h"
#include "ui/theme/theme.h"

namespace recto::ui {
namespace {

constexpr int least_context = 512;  // below it a chat makes no sense

// On a card a share of what is free; 0 where the report names no share.
std::uint64_t free_after_eject(const EstimateReport& r) {
    const std::uint64_t usable = r.memory.budget_bytes > 0 ? r.memory.budget_bytes : r.memory.free_bytes;
    return usable + r.returned_bytes;
}

std::uint64_t needed(const EstimateReport& r) {
    return r.memory.weight_bytes + r.memory.workspace_bytes + r.memory.full_context_kv_bytes;
}

int longest_context(const EstimateReport& r) {
    const std::uint64_t fixed = r.memory.weight_bytes + r.memory.workspace_bytes;
    const std::uint64_t free = free_after_eject(r);
    if (free <= fixed || r.memory.kv_bytes_per_token == 0) return 0;
    const std::uint64_t tokens = (free - fixed) / r.memory.kv_bytes_per_token;
    return int(std::min<std::uint64_t>(tokens, std::uint64_t(std::max(r.trained_context, 0))));
}

}  // namespace

int MemoryDialog::context_to_load(const EstimateReport& r) {
    if (needed(r) <= free_after_eject(r)) return 0;
    return longest_context(r) / 256 * 256;
}

bool MemoryDialog::loadable(const EstimateReport& r) {
    if (!r.error.empty()) return false;
    return needed(r) <= free_after_eject(r) || context_to_load(r) >= least_context;
}

MemoryDialog::MemoryDialog(const Theme* theme, const EstimateReport& r, QWidget* parent) : QDialog(parent) {
    setObjectName(QStringLiteral("memory_dialog"));
    setAttribute(Qt::WA_DeleteOnClose);
    setWindowTitle(tr("Load model"));
    const Palette& p = theme->palette();
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(20, 16, 20, 16);
    column->setSpacing(10);
    const auto add_text = [&](const QString& text, const QFont& font, bool dim) {
        auto* label = new QLabel(text, this);
        label->setFont(font);
        label->setWordWrap(true);
        label->setTextFormat(Qt::PlainText);
        label->setProperty("dim", dim);
        label->setTextInteractionFlags(Qt::TextSelectableByMouse);
        column->addWidget(label);
        return label;
    };
    const bool ok = loadable(r);
    if (!r.error.empty()) {
        add_text(tr("This model cannot be loaded"), p.fonts.heading, false);
        add_text(QString::fromStdString(r.error), p.fonts.body, false)
            ->setObjectName(QStringLiteral("memory_verdict"));
    } else {
        add_text(QString::fromStdString(r.name), p.fonts.heading, false);
        add_text(tr("%1 · %2 · %3 · file %4")
                     .arg(QString::fromStdString(r.architecture), QString::fromStdString(r.format),
                          QString::fromStdString(r.quantization), format_bytes(r.file_bytes)),
                 p.fonts.note, true);
        auto* grid = new QGridLayout;
        grid->setHorizontalSpacing(24);
        grid->setColumnStretch(0, 1);
        int row = 0;
        const auto add_row = [&](const QString& what, std::uint64_t bytes, bool strong) {
            auto* name = new QLabel(what, this);
            auto* value = new QLabel(format_bytes(bytes), this);
            for (QLabel* label : {name, value})
                label->setFont(strong ? p.fonts.strong : p.fonts.body);
            name->setWordWrap(true);
            grid->addWidget(name, row, 0);
            grid->addWidget(value, row++, 1, Qt::AlignRight);
        };
        add_row(tr("Weights"), r.memory.weight_bytes, false);
        add_row(tr("Workspace"), r.memory.workspace_bytes, false);
        add_row(tr("KV cache, one full context of %1 tokens").arg(format_count(r.trained_context)),
                r.memory.full_context_kv_bytes, false);
        add_row(tr("Needed"), needed(r), true);
        add_row(tr("Free now"), r.memory.free_bytes, true);
        if (r.memory.budget_bytes > 0 && r.memory.budget_bytes < r.memory.free_bytes)
            add_row(tr("Of these for the model"), r.memory.budget_bytes, false);
        if (r.returned_bytes > 0)
            add_row(tr("Comes back from the model loaded now"), r.returned_bytes, false);
        column->addLayout(grid);
        const int context = context_to_load(r);
        const QString verdict =
            !ok           ? tr("It does not fit. A smaller model or a build with fewer bits would.")
            : context > 0 ? tr("A full context does not fit. It can be loaded with a context of %1 tokens.")
                                .arg(format_count(context))
                          : tr("It fits.");
        add_text(verdict, p.fonts.body, false)->setObjectName(QStringLiteral("memory_verdict"));
    }
    auto* row = new QHBoxLayout;
    row->addStretch(1);
    auto* cancel = new QPushButton(ok ? tr("Cancel") : tr("Close"), this);
    cancel->setObjectName(QStringLiteral("memory_cancel"));
    connect(cancel, &QPushButton::clicked, this, &QDialog::reject);
    row->addWidget(cancel);
    if (ok) {
        auto* load = new QPushButton(tr("Load"), this);
        load->setObjectName(QStringLiteral("memory_load"));
        load->setProperty("primary", true);
        load->setDefault(true);
        ModelRequest request = r.request;
        if (const int context = context_to_load(r); context > 0) request.engine.max_model_len = context;
        connect(load, &QPushButton::clicked, this, [this, request] {
            accept();
            Q_EMIT load_confirmed(request);
        });
        row->addWidget(load);
        load->setFocus();
    }
    column->addLayout(row);
    setMinimumWidth(int(440 * p.zoom));
}

}  // namespace recto::ui
