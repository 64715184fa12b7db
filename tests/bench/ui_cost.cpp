// Prints what the live panel costs: GUI-thread CPU per second with it and without it, and the loss of decode
// speed, in the order A B B A A B B A (A: panel hidden, B: shown) so that a drift of the machine cancels.
// What drawing alone costs at 2,048 blocks is printed by the room `window` (TestPanelLive). Measured, not
// asserted.
#include <QElapsedTimer>
#include <QTimer>
#include <ctime>
#include <thread>

#include "four_chats.h"

using namespace recto::test;

namespace {

constexpr int phase_ms = 4000;

double thread_seconds() {
    timespec t{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return double(t.tv_sec) + double(t.tv_nsec) * 1e-9;
}

struct Phase {
    double tokens_s = 0, gui_cpu = 0;  // gui_cpu: share of one core
};

std::uint64_t decoded(FourChats& chats) {
    std::uint64_t tokens = 0;
    bool arrived = false;
    QObject context;
    QObject::connect(&chats.session(), &recto::ui::Session::snapshot_ready, &context,
                     [&](auto*, const auto& snapshot) {
                         tokens = snapshot->engine.tokens_decoded;
                         arrived = true;
                     });
    chats.session().host()->request_snapshot();
    QTest::qWaitFor([&] { return arrived; }, 5000);
    return tokens;
}

Phase measure(FourChats& chats, bool shown) {
    chats.session().settings().set_panel_visible(shown);
    QTest::qWait(500);
    QElapsedTimer wall;
    wall.start();
    const double cpu = thread_seconds();
    const std::uint64_t before = decoded(chats);
    while (wall.elapsed() < phase_ms) {
        QTest::qWait(50);
        chats.keep_busy();
    }
    const std::uint64_t after = decoded(chats);
    const double seconds = double(wall.nsecsElapsed()) * 1e-9;
    return {double(after - before) / seconds, (thread_seconds() - cpu) / seconds};
}

}  // namespace

int main(int argc, char** argv) {
    QApplication app(argc, argv);
    const auto chats = FourChats::open();
    if (!chats) return 1;
    std::vector<double> hidden_speed, shown_speed, hidden_cpu, shown_cpu;
    for (const bool shown : {false, true, true, false, false, true, true, false}) {
        const Phase p = measure(*chats, shown);
        (shown ? shown_speed : hidden_speed).push_back(p.tokens_s);
        (shown ? shown_cpu : hidden_cpu).push_back(p.gui_cpu);
    }
    const double loss = 1 - percentile(shown_speed, 0.5) / percentile(hidden_speed, 0.5);
    const double extra = percentile(shown_cpu, 0.5) - percentile(hidden_cpu, 0.5);
    std::printf("decode of four chats: %.1f tok/s with the panel hidden, %.1f shown: loss %.1f %%\n",
                percentile(hidden_speed, 0.5), percentile(shown_speed, 0.5), loss * 100);
    std::printf(
        "GUI-thread CPU: %.1f ms a second hidden, %.1f shown: the panel takes %.1f ms a second, %.2f %% of "
        "%u cores\n",
        percentile(hidden_cpu, 0.5) * 1000, percentile(shown_cpu, 0.5) * 1000, extra * 1000,
        extra / double(std::thread::hardware_concurrency()) * 100, std::thread::hardware_concurrency());
    return 0;
}
