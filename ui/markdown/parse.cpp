#include "ui/markdown/parse.h"

#include <md4c.h>

#include <QHash>
#include <optional>
#include <utility>

#include "ui/markdown/prepare.h"

namespace recto::ui::markdown {

namespace {

// HTML's named characters that answers use. Others stay as written: nothing may vanish.
QString decode_entity(const QString& entity) {
    static const QHash<QString, QString> named = {
        {QStringLiteral("&amp;"), QStringLiteral("&")},
        {QStringLiteral("&lt;"), QStringLiteral("<")},
        {QStringLiteral("&gt;"), QStringLiteral(">")},
        {QStringLiteral("&quot;"), QStringLiteral("\"")},
        {QStringLiteral("&apos;"), QStringLiteral("'")},
        {QStringLiteral("&nbsp;"), QString(QChar(0xA0))},
        {QStringLiteral("&times;"), QString(QChar(0xD7))},
        {QStringLiteral("&hellip;"), QString(QChar(0x2026))},
        {QStringLiteral("&ndash;"), QString(QChar(0x2013))},
        {QStringLiteral("&mdash;"), QString(QChar(0x2014))},
        {QStringLiteral("&le;"), QString(QChar(0x2264))},
        {QStringLiteral("&ge;"), QString(QChar(0x2265))},
        {QStringLiteral("&rarr;"), QString(QChar(0x2192))},
        {QStringLiteral("&copy;"), QString(QChar(0xA9))},
        {QStringLiteral("&deg;"), QString(QChar(0xB0))},
        {QStringLiteral("&middot;"), QString(QChar(0xB7))},
    };
    if (const auto found = named.find(entity); found != named.end()) return *found;
    if (!entity.startsWith(QLatin1String("&#"))) return entity;
    const bool hex = entity.size() > 2 && entity[2].toLower() == u'x';
    bool ok = false;
    const QStringView digits = QStringView(entity).sliced(hex ? 3 : 2).chopped(1);
    const char32_t code = digits.toUInt(&ok, hex ? 16 : 10);
    const bool valid = ok && code > 0 && code <= 0x10FFFF && !(code >= 0xD800 && code <= 0xDFFF);
    return valid ? QString::fromUcs4(&code, 1) : QString(QChar(QChar::ReplacementCharacter));
}

struct List {
    bool ordered = false;
    bool tight = true;
    unsigned next = 1;
    QChar delimiter;
    bool first_item = true;
};

class Builder {
  public:
    explicit Builder(std::vector<Formula> formulas) : formulas_(std::move(formulas)) {}

    std::vector<Block> take() { return std::move(blocks_); }

    void enter_block(MD_BLOCKTYPE type, void* detail) {
        switch (type) {
            case MD_BLOCK_QUOTE:
                close_leaf();
                ++quote_depth_;
                break;
            case MD_BLOCK_UL:
                close_leaf();
                lists_.push_back({false, static_cast<MD_BLOCK_UL_DETAIL*>(detail)->is_tight != 0});
                break;
            case MD_BLOCK_OL: {
                const auto* list = static_cast<MD_BLOCK_OL_DETAIL*>(detail);
                close_leaf();
                lists_.push_back({true, list->is_tight != 0, list->start, QLatin1Char(list->mark_delimiter)});
                break;
            }
            case MD_BLOCK_LI:
                enter_item(static_cast<MD_BLOCK_LI_DETAIL*>(detail));
                break;
            case MD_BLOCK_HR:
                open_leaf(BlockKind::rule);
                close_leaf();
                break;
            case MD_BLOCK_H:
                open_leaf(BlockKind::heading);
                leaf_->heading_level = int(static_cast<MD_BLOCK_H_DETAIL*>(detail)->level);
                break;
            case MD_BLOCK_CODE:
                open_leaf(BlockKind::code);
                leaf_->language = attribute(static_cast<MD_BLOCK_CODE_DETAIL*>(detail)->lang);
                break;
            case MD_BLOCK_P:
                open_leaf(BlockKind::paragraph);
                break;
            case MD_BLOCK_TABLE:
                open_leaf(BlockKind::table);
                row_ = -1;
                break;
            case MD_BLOCK_TR:
                ++row_;
                column_ = 0;
                break;
            case MD_BLOCK_TH:
            case MD_BLOCK_TD:
                enter_cell(static_cast<MD_BLOCK_TD_DETAIL*>(detail));
                break;
            default:
                break;
        }
    }

    void leave_block(MD_BLOCKTYPE type) {
        switch (type) {
            case MD_BLOCK_QUOTE:
                close_leaf();
                --quote_depth_;
                break;
            case MD_BLOCK_UL:
            case MD_BLOCK_OL:
                lists_.pop_back();
                break;
            case MD_BLOCK_LI:
                if (!marker_.isEmpty() && !leaf_) open_leaf(BlockKind::paragraph);
                close_leaf();
                break;
            case MD_BLOCK_TR:
                leaf_->text += u'\n';
                break;
            case MD_BLOCK_TH:
            case MD_BLOCK_TD:
                leaf_->cells.back().length = int(leaf_->text.size()) - leaf_->cells.back().start;
                break;
            case MD_BLOCK_H:
            case MD_BLOCK_CODE:
            case MD_BLOCK_P:
            case MD_BLOCK_TABLE:
                close_leaf();
                break;
            default:
                break;
        }
    }

    void enter_span(MD_SPANTYPE type, void* detail) {
        need_leaf();
        if (type == MD_SPAN_A) {
            leaf_->links.push_back(attribute(static_cast<MD_SPAN_A_DETAIL*>(detail)->href));
            link_ = int(leaf_->links.size()) - 1;
        }
        if (type == MD_SPAN_IMG) image_ = attribute(static_cast<MD_SPAN_IMG_DETAIL*>(detail)->src);
        ++depth_[type];
    }

    void leave_span(MD_SPANTYPE type) {
        // The address stands beside the alternative text: an answer must never cause a fetch.
        if (type == MD_SPAN_IMG) add_text(QStringLiteral(" (%1)").arg(image_), style());
        --depth_[type];
        if (type == MD_SPAN_A) link_ = -1;
    }

    void text(MD_TEXTTYPE type, const MD_CHAR* text, MD_SIZE size) {
        need_leaf();
        switch (type) {
            // A model ends lines where it means to (verse, addresses), so a soft break is kept as well.
            case MD_TEXT_BR:
            case MD_TEXT_SOFTBR:
                add_text(QStringLiteral("\n"), style());
                break;
            case MD_TEXT_NULLCHAR:
                add_text(QString(QChar(QChar::ReplacementCharacter)), style());
                break;
            case MD_TEXT_ENTITY:
                add_text(decode_entity(QString::fromUtf8(text, size)), style());
                break;
            case MD_TEXT_CODE:
                add_text(restore_source(QString::fromUtf8(text, size), formulas_), style());
                break;
            default:
                add_with_formulas(QString::fromUtf8(text, size));
                break;
        }
    }

  private:
    void enter_item(const MD_BLOCK_LI_DETAIL* item) {
        close_leaf();
        List& list = lists_.back();
        if (item->is_task)
            marker_ = QString(QChar(item->task_mark == ' ' ? 0x2610 : 0x2611));
        else if (list.ordered)
            marker_ = QString::number(list.next) + list.delimiter;
        else
            marker_ = QString(QChar(0x2022));
        ++list.next;
        item_tight_ = list.tight && !(list.first_item && lists_.size() == 1);
        list.first_item = false;
    }

    void enter_cell(const MD_BLOCK_TD_DETAIL* cell) {
        if (column_ > 0) leaf_->text += u'\t';
        if (row_ == 0)
            leaf_->aligns.push_back(cell->align == MD_ALIGN_CENTER  ? Align::center
                                    : cell->align == MD_ALIGN_RIGHT ? Align::right
                                                                    : Align::left);
        leaf_->cells.push_back({row_, column_++, int(leaf_->text.size()), 0});
    }

    void open_leaf(BlockKind kind) {
        close_leaf();
        Block block;
        block.kind = kind;
        block.indent = int(lists_.size());
        block.quote_depth = quote_depth_;
        block.tight = !lists_.empty() && (marker_.isEmpty() ? lists_.back().tight : item_tight_);
        block.marker = std::exchange(marker_, {});
        blocks_.push_back(std::move(block));
        leaf_ = &blocks_.back();
    }

    // Items of a tight list hold their text directly, with no paragraph around it.
    void need_leaf() {
        if (!leaf_) open_leaf(BlockKind::paragraph);
    }

    void close_leaf() { leaf_ = nullptr; }

    quint16 style() const {
        quint16 bits = plain;
        if (depth_[MD_SPAN_STRONG]) bits |= bold;
        if (depth_[MD_SPAN_EM]) bits |= italic;
        if (depth_[MD_SPAN_CODE]) bits |= code;
        if (depth_[MD_SPAN_DEL]) bits |= strike;
        if (link_ >= 0) bits |= markdown::link;
        if (depth_[MD_SPAN_IMG]) bits |= image;
        return bits;
    }

    void add_text(const QString& text, quint16 bits) {
        if (text.isEmpty()) return;
        const int start = int(leaf_->text.size());
        leaf_->text += text;
        if (bits == plain || leaf_->kind == BlockKind::code) return;
        auto& spans = leaf_->spans;
        const bool extends = !spans.empty() && spans.back().start + spans.back().length == start &&
                             spans.back().style == bits && spans.back().link == link_ && !(bits & math);
        if (extends)
            spans.back().length += int(text.size());
        else
            spans.push_back({start, int(text.size()), bits, link_});
    }

    void add_with_formulas(const QString& text) {
        qsizetype from = 0;
        while (from < text.size()) {
            const qsizetype open = text.indexOf(QChar(formula_open), from);
            const qsizetype end = open < 0 ? text.size() : open;
            add_text(restore_source(QStringView(text).sliced(from, end - from), formulas_), style());
            if (open < 0) return;
            const qsizetype close = text.indexOf(QChar(formula_close), open);
            size_t index = 0;
            for (qsizetype i = open + 1; i < close; ++i)
                index = index * 10 + (text[i].unicode() - digit_zero);
            Q_ASSERT(close > 0 && index < formulas_.size());
            const Formula& formula = formulas_[index];
            add_text(formula.tex, quint16(style() | math | (formula.display ? display_math : plain)));
            from = close + 1;
        }
    }

    QString attribute(const MD_ATTRIBUTE& value) const {
        QString out;
        for (MD_SIZE i = 0; value.text && value.substr_offsets[i] < value.size; ++i) {
            const MD_OFFSET from = value.substr_offsets[i], to = value.substr_offsets[i + 1];
            const QString part = QString::fromUtf8(value.text + from, to - from);
            out += value.substr_types[i] == MD_TEXT_ENTITY ? decode_entity(part) : part;
        }
        return restore_source(out, formulas_);
    }

    std::vector<Formula> formulas_;
    std::vector<Block> blocks_;
    Block* leaf_ = nullptr;  // blocks_.back() while open
    std::vector<List> lists_;
    int quote_depth_ = 0;
    QString marker_;
    bool item_tight_ = false;
    int row_ = -1, column_ = 0;
    int depth_[MD_SPAN_U + 1] = {};
    int link_ = -1;
    QString image_;
};

}  // namespace

std::vector<Block> parse(QStringView source) {
    Prepared prepared = prepare(source);
    Builder builder(std::move(prepared.formulas));
    MD_PARSER parser = {};
    parser.flags = MD_DIALECT_GITHUB | MD_FLAG_NOHTML;
    parser.enter_block = [](MD_BLOCKTYPE type, void* detail, void* self) {
        static_cast<Builder*>(self)->enter_block(type, detail);
        return 0;
    };
    parser.leave_block = [](MD_BLOCKTYPE type, void*, void* self) {
        static_cast<Builder*>(self)->leave_block(type);
        return 0;
    };
    parser.enter_span = [](MD_SPANTYPE type, void* detail, void* self) {
        static_cast<Builder*>(self)->enter_span(type, detail);
        return 0;
    };
    parser.leave_span = [](MD_SPANTYPE type, void*, void* self) {
        static_cast<Builder*>(self)->leave_span(type);
        return 0;
    };
    parser.text = [](MD_TEXTTYPE type, const MD_CHAR* text, MD_SIZE size, void* self) {
        static_cast<Builder*>(self)->text(type, text, size);
        return 0;
    };
    if (md_parse(prepared.utf8.constData(), MD_SIZE(prepared.utf8.size()), &parser, &builder) != 0)
        throw std::bad_alloc();  // md4c's only failure of its own
    return builder.take();
}

}  // namespace recto::ui::markdown
