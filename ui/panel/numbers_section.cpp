#include <QHBoxLayout>
#include <QLocale>
#include <cmath>

#include "ui/panel/sections.h"

namespace recto::ui {

NumbersSection::NumbersSection(const PanelContext& context, QWidget* parent) : PanelSection(context, parent) {
    auto* row = new QHBoxLayout(this);
    row->setContentsMargins(0, 0, 0, 0);
    row->setSpacing(theme()->palette().metrics.gap);
    for (NumberCard** card : {&decode_, &prefill_, &sequences_}) {
        *card = new NumberCard(theme(), this);
        row->addWidget(*card, 1);
    }
    decode_->setObjectName(QStringLiteral("decode_card"));
    prefill_->setObjectName(QStringLiteral("prefill_card"));
    sequences_->setObjectName(QStringLiteral("sequences_card"));
}

void NumbersSection::refresh() {
    const EngineSnapshot* s = feed()->snapshot();
    const auto rate = [](double v) { return QLocale().toString(v, 'f', v > 0 && v < 10 ? 1 : 0); };
    decode_->set_number(s == nullptr ? QStringLiteral("–") : rate(feed()->series().latest_decode_tok_s()));
    prefill_->set_number(s == nullptr ? QStringLiteral("–") : rate(feed()->series().latest_prefill_tok_s()));
    sequences_->set_number(s == nullptr ? QStringLiteral("–")
                                        : QStringLiteral("%1 + %2").arg(s->running).arg(s->waiting));
}

void NumbersSection::retranslate() {
    decode_->set_caption(tr("decode tok/s, all chats"),
                         tr("Answer tokens of all chats, committed in the last second ÷ that time."));
    prefill_->set_caption(
        tr("prefill tok/s"),
        tr("Prompt tokens computed in the last second ÷ that time; cached ones are not counted."));
    sequences_->set_caption(tr("running + waiting"),
                            tr("Answers being computed + answers waiting for blocks."));
    refresh();
}

}  // namespace recto::ui
