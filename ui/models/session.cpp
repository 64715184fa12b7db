#include "ui/models/session.h"

#include <QDateTime>
#include <QDir>
#include <algorithm>

namespace recto::ui {

namespace {

constexpr int state_snapshots_per_second = 4;

}  // namespace

Session::Session(const ProfilePaths& paths, EngineFactory factory, QObject* parent, BenchRunner bench)
    : QObject(parent), factory_(std::move(factory)), settings_(paths), poll_(this) {
    connect(&store_, &ChatStore::opened, this, &Session::on_opened);
    connect(&store_, &ChatStore::open_failed, this, &Session::failed);
    connect(&store_, &ChatStore::trouble, this, &Session::store_trouble);
    connect(&store_, &ChatStore::recovered, this, &Session::store_recovered);
    connect(&store_, &ChatStore::refused, this, &Session::notice);
    connect(&poll_, &QTimer::timeout, this, [this] {
        for (const auto& host : hosts_)
            if (host->ready()) host->request_snapshot();
    });
    add_host();
    benchmark_ = std::make_unique<Benchmark>(this, QDir(paths.data).filePath(QStringLiteral("benchmarks")),
                                             std::move(bench));
}

Session::~Session() {
    shutdown();
}

HostClient* Session::host(int number) const {
    return number >= 0 && number < host_count() ? hosts_[std::size_t(number)].get() : nullptr;
}

HostClient* Session::add_host() {
    hosts_.push_back(std::make_unique<HostClient>(host_count(), factory_));
    HostClient* host = hosts_.back().get();
    connect(host, &HostClient::state_changed, this, [this, host](HostState state) {
        if (state != HostState::ready) return;
        host->request_snapshot();
        settings_.set_last_model(QString::fromStdString(host->model()->path.string()));
        settings_.add_recent_model(settings_.last_model());
    });
    connect(host, &HostClient::snapshot_ready, this,
            [this, host](const std::shared_ptr<const PoolSnapshot>& snapshot) {
                for (Chat* chat : std::as_const(chats_))
                    if (chat->busy()) chat->take_snapshot(*snapshot);
                Q_EMIT snapshot_ready(host, snapshot);
            });
    Q_EMIT host_added(host);
    return host;
}

QString Session::owner_name(OwnerId owner) const {
    if (const Chat* known = chat(ChatId(owner))) return known->title();
    return owner == 0 ? tr("nobody") : tr("a deleted chat");
}

void Session::start() {
    store_.open(settings_.paths().store());
}

void Session::on_opened(const StoreInfo& info) {
    for (const ChatRecord& record : info.chats) {
        Chat* chat = adopt(record, true);
        (chat->trashed() ? trash_ : chats_).append(chat);
    }
    if (!settings_.notice().isEmpty()) Q_EMIT notice(settings_.notice());
    for (const QString& sentence : info.notices)
        Q_EMIT notice(sentence);
    Q_EMIT ready();
}

Chat* Session::adopt(const ChatRecord& record, bool stored) {
    auto* chat = new Chat(record, stored, &store_, &settings_, this);
    by_id_.insert(record.id, chat);
    chat->set_host(host());
    connect(chat, &Chat::record_changed, this, [this, chat] { Q_EMIT chat_changed(chat); });
    connect(chat, &Chat::state_changed, this, [this, chat] {
        Q_EMIT chat_changed(chat);
        update_polling();
    });
    return chat;
}

Chat* Session::chat(ChatId id) const {
    return by_id_.value(id, nullptr);
}

Chat* Session::new_chat(const QString& system_prompt) {
    if (!store_.is_open()) return nullptr;
    ChatRecord record;
    record.id = store_.take_chat_id();
    record.created = record.updated = QDateTime::currentDateTimeUtc();
    record.system_prompt = system_prompt.isEmpty() ? settings_.system_prompt() : system_prompt;
    Chat* chat = adopt(record, false);
    chats_.prepend(chat);
    chat->open();
    Q_EMIT chat_added(chat);
    return chat;
}

void Session::trash_chat(ChatId id) {
    Chat* chat = this->chat(id);
    if (!chat || !chats_.removeOne(chat)) return;
    trash_.prepend(chat);
    chat->put_in_trash();
    Q_EMIT chat_removed(chat);
}

void Session::restore_chat(ChatId id) {
    Chat* chat = this->chat(id);
    if (!chat || !trash_.removeOne(chat)) return;
    chats_.prepend(chat);
    chat->restore();
    Q_EMIT chat_added(chat);
}

void Session::delete_chat(ChatId id) {
    Chat* chat = this->chat(id);
    if (!chat || !trash_.removeOne(chat)) return;
    by_id_.remove(id);
    store_.purge_chat(id);
    Q_EMIT chat_deleted(id);
    chat->deleteLater();
}

int Session::busy_count() const {
    return int(std::count_if(by_id_.begin(), by_id_.end(), [](const Chat* chat) { return chat->busy(); }));
}

void Session::stop_all() {
    for (Chat* chat : std::as_const(by_id_))
        chat->stop();
}

void Session::set_snapshot_rate(int per_second) {
    panel_rate_ = std::max(0, per_second);
    for (const auto& host : hosts_)
        if (panel_rate_ > 0 && host->ready()) host->request_snapshot();
    update_polling();
}

void Session::update_polling() {
    if (shut_down_) return;
    if (busy_count() == 0) {
        if (!poll_.isActive()) return;
        poll_.stop();
        for (const auto& host : hosts_)  // how things stand at the end
            if (host->ready()) host->request_snapshot();
        return;
    }
    const int interval = 1000 / std::max(state_snapshots_per_second, panel_rate_);
    if (poll_.isActive() && poll_.interval() == interval) return;
    poll_.start(interval);
}

void Session::shutdown() {
    if (shut_down_) return;
    shut_down_ = true;
    poll_.stop();
    benchmark_->shutdown();
    for (const auto& host : hosts_)
        host->shutdown();  // their last words reach the chats, and through them the store
    for (Chat* chat : std::as_const(by_id_))
        chat->abandon();
    settings_.save();
    store_.close();
}

}  // namespace recto::ui
