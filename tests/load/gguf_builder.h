// Writes GGUF files, also lying ones: every count, offset and length can be given a false value.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "load/files.h"

namespace recto::test {

struct GgufBuilder {
    struct Tensor {
        std::string name;
        std::vector<std::int64_t> dims;  // dims[0] contiguous
        std::uint32_t type = 0;
        std::string data;
        std::optional<std::uint64_t> offset;  // what the file says instead of the true one
    };

    std::string magic = "GGUF";
    std::uint32_t version = 3;
    std::optional<std::int64_t> tensor_count, pair_count;
    std::uint32_t alignment = 32;  // used for the layout; the key is written by the test
    bool pad_last = true;
    std::vector<Bytes> pairs;
    std::vector<Tensor> tensors;

    GgufBuilder& u32(const std::string& key, std::uint32_t value) { return pair(key, 4, Bytes().put(value)); }
    GgufBuilder& f32(const std::string& key, float value) { return pair(key, 6, Bytes().put(value)); }
    GgufBuilder& boolean(const std::string& key, std::uint8_t value) {
        return pair(key, 7, Bytes().put(value));
    }
    GgufBuilder& text(const std::string& key, const std::string& value) {
        return pair(key, 8, Bytes().string(value));
    }
    GgufBuilder& texts(const std::string& key, const std::vector<std::string>& values) {
        Bytes bytes;
        bytes.put<std::uint32_t>(8).put<std::uint64_t>(values.size());
        for (const auto& value : values)
            bytes.string(value);
        return pair(key, 9, bytes);
    }
    template <class T>
    GgufBuilder& array(const std::string& key, std::uint32_t element_type, const std::vector<T>& values) {
        Bytes bytes;
        bytes.put(element_type).template put<std::uint64_t>(values.size());
        for (const T value : values)
            bytes.put(value);
        return pair(key, 9, bytes);
    }
    GgufBuilder& pair(const std::string& key, std::uint32_t type, const Bytes& value) {
        pairs.push_back(Bytes().string(key).put(type).raw(value.text()));
        return *this;
    }
    GgufBuilder& f32_tensor(const std::string& name, const std::vector<std::int64_t>& dims,
                            const std::vector<float>& values) {
        Bytes data;
        for (const float value : values)
            data.put(value);
        tensors.push_back({name, dims, 0, data.text(), {}});
        return *this;
    }
    // A tensor whose element i is i / 64.
    GgufBuilder& counted_tensor(const std::string& name, const std::vector<std::int64_t>& dims) {
        std::int64_t n = 1;
        for (const auto dim : dims)
            n *= dim;
        std::vector<float> values;
        for (std::int64_t i = 0; i < n; ++i)
            values.push_back(float(i) / 64.0F);
        return f32_tensor(name, dims, values);
    }
    Tensor& tensor(const std::string& name) {
        for (auto& t : tensors)
            if (t.name == name) return t;
        qFatal("no such tensor");
    }
    void drop_tensor(const std::string& name) {
        std::erase_if(tensors, [&](const Tensor& t) { return t.name == name; });
    }
    void drop_pair(const std::string& key) {
        const std::string start = Bytes().string(key).text();
        std::erase_if(pairs, [&](const Bytes& p) { return p.text().starts_with(start); });
    }

    std::size_t data_bytes() const {  // behind the header
        std::size_t sum = 0;
        for (const auto& t : tensors)
            sum += (t.data.size() + alignment - 1) / alignment * alignment;
        return sum;
    }
    std::string bytes() const {
        Bytes out;
        out.raw(magic).put(version);
        out.put<std::int64_t>(tensor_count.value_or(std::int64_t(tensors.size())));
        out.put<std::int64_t>(pair_count.value_or(std::int64_t(pairs.size())));
        for (const auto& p : pairs)
            out.raw(p.text());
        std::uint64_t offset = 0;
        for (const auto& t : tensors) {
            out.string(t.name).put(std::uint32_t(t.dims.size()));
            for (const auto dim : t.dims)
                out.put(dim);
            out.put(t.type).put(t.offset.value_or(offset));
            offset += (t.data.size() + alignment - 1) / alignment * alignment;
        }
        out.pad_to(alignment);
        for (std::size_t i = 0; i < tensors.size(); ++i) {
            out.raw(tensors[i].data);
            if (pad_last || i + 1 < tensors.size()) out.pad_to(alignment);
        }
        return out.text();
    }
};

// A model of one layer that opens: 2 heads of 8, 1 key/value head, hidden 16, feed-forward 24, 5 tokens.
inline GgufBuilder small_model(const std::string& architecture) {
    const std::string a = architecture + ".";
    GgufBuilder b;
    b.text("general.architecture", architecture).u32(a + "block_count", 1).u32(a + "context_length", 64);
    b.u32(a + "embedding_length", 16).u32(a + "feed_forward_length", 24).u32(a + "attention.head_count", 2);
    b.u32(a + "attention.head_count_kv", 1).f32(a + "attention.layer_norm_rms_epsilon", 1e-5F);
    b.counted_tensor("token_embd.weight", {16, 5}).counted_tensor("output_norm.weight", {16});
    b.counted_tensor("blk.0.attn_norm.weight", {16}).counted_tensor("blk.0.attn_q.weight", {16, 16});
    b.counted_tensor("blk.0.attn_k.weight", {16, 8}).counted_tensor("blk.0.attn_v.weight", {16, 8});
    b.counted_tensor("blk.0.attn_output.weight", {16, 16}).counted_tensor("blk.0.ffn_norm.weight", {16});
    b.counted_tensor("blk.0.ffn_gate.weight", {16, 24}).counted_tensor("blk.0.ffn_up.weight", {16, 24});
    b.counted_tensor("blk.0.ffn_down.weight", {24, 16});
    return b;
}

}  // namespace recto::test
