// Test classes register themselves; test_main.cpp runs all of a room's classes in one program.
#pragma once
#include <QObject>
#include <functional>
#include <memory>
#include <vector>

namespace recto::test {

struct Registry {
    using Make = std::function<std::unique_ptr<QObject>()>;
    static std::vector<Make>& all() {
        static std::vector<Make> makers;
        return makers;
    }
};

template <class T>
struct Register {
    Register() {
        Registry::all().push_back([] { return std::make_unique<T>(); });
    }
};

}  // namespace recto::test

// Put after the class, before the .moc include.
#define RECTO_TEST_CLASS(T) static const recto::test::Register<T> register_##T
