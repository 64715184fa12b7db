// The program's state without a window: settings, store, engine hosts and chats. The main window composes it.
#pragma once
#include <QHash>
#include <QObject>
#include <QTimer>
#include <memory>
#include <vector>

#include "ui/host/host_client.h"
#include "ui/models/benchmark.h"
#include "ui/models/chat.h"
#include "ui/models/owner_palette.h"
#include "ui/settings/settings.h"
#include "ui/store/chat_store.h"

namespace recto::ui {

class Session : public QObject {
    Q_OBJECT
  public:
    explicit Session(const ProfilePaths& paths, EngineFactory factory = real_engine_factory(),
                     QObject* parent = nullptr, BenchRunner bench = real_bench_runner());
    ~Session() override;  // shutdown()

    Settings& settings() { return settings_; }
    ChatStore& store() { return store_; }
    Benchmark& benchmark() { return *benchmark_; }
    HostClient* host(int number = 0) const;  // host 0 is always there
    int host_count() const { return int(hosts_.size()); }
    HostClient* add_host();  // for side by side
    OwnerPalette& palette() { return palette_; }
    OwnerStyle style(OwnerId owner) { return palette_.style(owner); }
    QString owner_name(OwnerId owner) const;  // the chat's title; "nobody" for 0

    void start();  // opens the store → ready or failed
    bool is_ready() const { return store_.is_open(); }

    QList<Chat*> chats() const { return chats_; }  // not in the trash, newest first
    QList<Chat*> trash() const { return trash_; }
    Chat* chat(ChatId id) const;                        // null: no such chat
    Chat* new_chat(const QString& system_prompt = {});  // stored with its first message, draft or setting
    void trash_chat(ChatId id);                         // its answer is stopped
    void restore_chat(ChatId id);                       // undo
    void delete_chat(ChatId id);                        // from the trash, for good
    int busy_count() const;
    void stop_all();

    // Snapshots for the chats' states come by themselves while something runs (4 a second). A visible panel
    // asks for more.
    void set_snapshot_rate(int per_second);  // 0: only what the states need

    // The one way out: stop accepting, cancel, join, free, commit, close. Idempotent. At most a few seconds.
    void shutdown();

  Q_SIGNALS:
    void ready();                                 // chats() is filled
    void failed(const QString& sentence);         // the store cannot be opened; nothing can be kept
    void notice(const QString& sentence);         // recovered, migrated, read-only …
    void store_trouble(const QString& sentence);  // writes wait in memory
    void store_recovered();
    void chat_added(recto::ui::Chat* chat);
    void chat_removed(recto::ui::Chat* chat);  // put in the trash; may be restored
    void chat_deleted(recto::ui::ChatId id);   // the object is gone after this
    void chat_changed(recto::ui::Chat* chat);  // title, state, speed
    void host_added(recto::ui::HostClient* host);
    void snapshot_ready(recto::ui::HostClient* host, std::shared_ptr<const recto::ui::PoolSnapshot> snapshot);

  private:
    void on_opened(const StoreInfo& info);
    Chat* adopt(const ChatRecord& record, bool stored);
    void update_polling();
    EngineFactory factory_;
    Settings settings_;
    ChatStore store_;
    std::vector<std::unique_ptr<HostClient>> hosts_;
    std::unique_ptr<Benchmark> benchmark_;
    OwnerPalette palette_;
    QHash<ChatId, Chat*> by_id_;
    QList<Chat*> chats_, trash_;
    QTimer poll_;
    int panel_rate_ = 0;
    bool shut_down_ = false;
};

}  // namespace recto::ui
