#include "ui/sidebar.h"

#include <QKeyEvent>
#include <QLineEdit>
#include <QListView>
#include <QMenu>
#include <QPainter>
#include <QPushButton>
#include <QVBoxLayout>

#include "ui/chat_list_delegate.h"
#include "ui/model_card.h"
#include "ui/models/chat_list_model.h"
#include "ui/theme/theme.h"

namespace recto::ui {

Sidebar::Sidebar(const Theme* theme, Session* session, QWidget* parent)
    : QWidget(parent), theme_(theme), model_(new ChatListModel(session, this)) {
    setObjectName(QStringLiteral("sidebar"));
    const Metrics& m = theme->palette().metrics;
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(m.pad, m.pad, m.pad, m.pad);
    column->setSpacing(10);
    new_chat_ = new QPushButton(this);
    new_chat_->setObjectName(QStringLiteral("new_chat_button"));
    new_chat_->setProperty("primary", true);
    search_ = new QLineEdit(this);
    search_->setObjectName(QStringLiteral("chat_search"));
    search_->setClearButtonEnabled(true);
    delegate_ = new ChatListDelegate(theme, this);
    list_ = new QListView(this);
    list_->setObjectName(QStringLiteral("chat_list"));
    list_->setModel(model_);
    list_->setItemDelegate(delegate_);
    list_->setFrameShape(QFrame::NoFrame);
    list_->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    list_->setSelectionMode(QAbstractItemView::SingleSelection);
    list_->setEditTriggers(QAbstractItemView::NoEditTriggers);
    list_->setMouseTracking(true);
    list_->setContextMenuPolicy(Qt::CustomContextMenu);
    list_->setVerticalScrollMode(QAbstractItemView::ScrollPerPixel);
    card_ = new ModelCard(theme, session->host(), this);
    column->addWidget(new_chat_);
    column->addWidget(search_);
    column->addWidget(list_, 1);
    column->addWidget(card_);

    connect(new_chat_, &QPushButton::clicked, this, &Sidebar::new_chat_wanted);
    connect(search_, &QLineEdit::textChanged, this,
            [this](const QString& text) { model_->set_filter(text); });
    connect(list_, &QListView::clicked, this, [this](const QModelIndex& index) { activate(index); });
    connect(list_, &QListView::customContextMenuRequested, this, [this](const QPoint& at) { show_menu(at); });
    search_->installEventFilter(this);
    list_->installEventFilter(this);
    connect(theme, &Theme::changed, this, [this] { restyle(); });
    restyle();
    retranslate();
}

void Sidebar::set_open_chat(ChatId id) {
    delegate_->set_open_chat(id);
    const QModelIndex index = model_->index_of(id);
    if (index.isValid()) list_->setCurrentIndex(index);
    list_->viewport()->update();
}

void Sidebar::focus_search() {
    search_->setFocus(Qt::ShortcutFocusReason);
    search_->selectAll();
}

Chat* Sidebar::selected_chat() const {
    return model_->chat_at(list_->currentIndex());
}

void Sidebar::activate(const QModelIndex& index) {
    if (Chat* chat = model_->chat_at(index)) Q_EMIT chat_wanted(chat);
}

void Sidebar::show_menu(const QPoint& position) {
    Chat* chat = model_->chat_at(list_->indexAt(position));
    if (chat == nullptr) return;
    auto* menu = new QMenu(this);
    menu->setAttribute(Qt::WA_DeleteOnClose);
    menu->addAction(tr("Open"), this, [this, chat] { Q_EMIT chat_wanted(chat); });
    menu->addAction(tr("Rename…"), this, [this, chat] { Q_EMIT rename_wanted(chat); });
    if (chat->busy()) menu->addAction(tr("Stop"), chat, [chat] { chat->stop(); });
    menu->addSeparator();
    menu->addAction(tr("Delete"), this, [this, chat] { Q_EMIT delete_wanted(chat); });
    menu->popup(list_->viewport()->mapToGlobal(position));
}

bool Sidebar::search_key(int key) {
    switch (key) {
        case Qt::Key_Escape:
            if (search_->text().isEmpty()) return false;
            search_->clear();
            return true;
        case Qt::Key_Down:
            list_->setFocus(Qt::OtherFocusReason);
            return true;
        case Qt::Key_Return:
        case Qt::Key_Enter:
            for (int row = 0; row < model_->rowCount(); ++row)
                if (Chat* chat = model_->chat_at(model_->index(row))) {
                    Q_EMIT chat_wanted(chat);
                    return true;
                }
            return true;
        default:
            return false;
    }
}

bool Sidebar::list_key(int key) {
    Chat* chat = selected_chat();
    if (chat == nullptr) return false;
    switch (key) {
        case Qt::Key_Return:
        case Qt::Key_Enter:
            Q_EMIT chat_wanted(chat);
            return true;
        case Qt::Key_F2:
            Q_EMIT rename_wanted(chat);
            return true;
        case Qt::Key_Delete:  // Backspace never deletes
            Q_EMIT delete_wanted(chat);
            return true;
        default:
            return false;
    }
}

bool Sidebar::eventFilter(QObject* watched, QEvent* event) {
    // F2 in the list is for the chat selected there; everywhere else it is the menu's, for the open one.
    if (event->type() == QEvent::ShortcutOverride && watched == list_ &&
        static_cast<QKeyEvent*>(event)->key() == Qt::Key_F2) {
        event->accept();
        return true;
    }
    if (event->type() == QEvent::KeyPress) {
        const auto* key = static_cast<QKeyEvent*>(event);
        const bool plain = key->modifiers() == Qt::NoModifier || key->modifiers() == Qt::KeypadModifier;
        if (plain && watched == search_ && search_key(key->key())) return true;
        if (plain && watched == list_ && list_key(key->key())) return true;
    }
    return QWidget::eventFilter(watched, event);
}

void Sidebar::retranslate() {
    new_chat_->setText(tr("New chat"));
    new_chat_->setToolTip(tr("New chat (Ctrl+N)"));
    search_->setPlaceholderText(tr("Search chats  Ctrl+K"));
    search_->setAccessibleName(tr("Search chats"));
    list_->setAccessibleName(tr("Chats"));
    model_->retranslate();
}

void Sidebar::restyle() {
    const Palette& p = theme_->palette();
    setMinimumWidth(int(168 * p.zoom));
    list_->setStyleSheet(QStringLiteral("QListView{background:%1;outline:0}").arg(p.panel.name()));
    list_->doItemsLayout();
}

void Sidebar::changeEvent(QEvent* event) {
    QWidget::changeEvent(event);
    if (event->type() == QEvent::LanguageChange) retranslate();
}

void Sidebar::paintEvent(QPaintEvent*) {
    QPainter(this).fillRect(rect(), theme_->palette().panel);
}

}  // namespace recto::ui
