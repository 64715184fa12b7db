#include "engine/text/sentencepiece_proto.h"

#include <cstring>
#include <optional>

#include "kernels/error.h"

namespace recto {

namespace {

// Field numbers of sentencepiece_model.proto.
enum ModelField : std::uint32_t { kPieces = 1, kTrainer = 2, kNormalizer = 3 };
enum PieceField : std::uint32_t { kPieceText = 1, kPieceScore = 2, kPieceType = 3 };
enum TrainerField : std::uint32_t {
    kModelType = 3,
    kWhitespaceAsSuffix = 24,
    kByteFallback = 35,
    kUnknownId = 40,
    kBosId = 41,
    kEosId = 42,
    kPaddingId = 43,
};
enum NormalizerField : std::uint32_t { kNormalizerName = 1, kDummyPrefix = 3, kRemoveExtra = 4, kEscape = 5 };
enum WireType : std::uint32_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

class WireReader {
  public:
    WireReader(std::string_view data, const std::string& label) : data_(data), label_(label) {}

    std::size_t left() const { return data_.size(); }

    struct Field {
        std::uint32_t number = 0, type = 0;
        std::uint64_t value = 0;  // kVarint, kFixed32, kFixed64
        std::string_view bytes;   // kBytes

        std::int32_t as_int() const { return static_cast<std::int32_t>(value); }
        bool is(std::uint32_t n, std::uint32_t wire) const { return number == n && type == wire; }
    };

    std::optional<Field> next() {
        if (data_.empty()) return std::nullopt;
        const std::uint64_t key = varint();
        Field field{static_cast<std::uint32_t>(key >> 3U), static_cast<std::uint32_t>(key & 7U), 0, {}};
        switch (field.type) {
            case kVarint:
                field.value = varint();
                break;
            case kFixed32:
                field.value = fixed(4);
                break;
            case kFixed64:
                field.value = fixed(8);
                break;
            case kBytes: {
                const std::uint64_t size = varint();
                if (size > data_.size()) fail("a field of " + std::to_string(size) + " bytes");
                field.bytes = data_.substr(0, size);
                data_.remove_prefix(size);
                break;
            }
            default:
                fail("a field of wire type " + std::to_string(field.type));
        }
        return field;
    }

  private:
    [[noreturn]] void fail(const std::string& found) const {
        throw Error(ErrorKind::input,
                    label_ + ": expected a SentencePiece model (a protocol buffer), found " + found +
                        " where " + std::to_string(data_.size()) + " bytes are left.");
    }
    std::uint64_t varint() {
        std::uint64_t value = 0;
        for (unsigned shift = 0; shift < 64; shift += 7) {
            if (data_.empty()) fail("its end inside a number");
            const auto byte = static_cast<unsigned char>(data_.front());
            data_.remove_prefix(1);
            value |= static_cast<std::uint64_t>(byte & 0x7FU) << shift;
            if (byte < 0x80) return value;
        }
        fail("a number of more than 64 bits");
    }
    std::uint64_t fixed(std::size_t bytes) {
        if (data_.size() < bytes) fail("its end inside a number");
        std::uint64_t value = 0;
        std::memcpy(&value, data_.data(), bytes);
        data_.remove_prefix(bytes);
        return value;
    }

    std::string_view data_;
    const std::string& label_;
};

SentencePieceProto::Piece read_piece(std::string_view data, const std::string& label) {
    SentencePieceProto::Piece piece;
    WireReader reader(data, label);
    while (const auto field = reader.next()) {
        if (field->is(kPieceText, kBytes)) piece.text = field->bytes;
        if (field->is(kPieceScore, kFixed32)) std::memcpy(&piece.score, &field->value, sizeof piece.score);
        if (field->is(kPieceType, kVarint)) piece.type = static_cast<SentencePieceProto::Type>(field->value);
    }
    return piece;
}

void read_trainer(std::string_view data, const std::string& label, SentencePieceProto& proto) {
    WireReader reader(data, label);
    while (const auto field = reader.next()) {
        if (field->type != kVarint) continue;
        switch (field->number) {
            case kModelType:
                proto.model_type = field->as_int();
                break;
            case kWhitespaceAsSuffix:
                proto.whitespace_as_suffix = field->value != 0;
                break;
            case kByteFallback:
                proto.byte_fallback = field->value != 0;
                break;
            case kUnknownId:
                proto.unknown_id = field->as_int();
                break;
            case kBosId:
                proto.bos_id = field->as_int();
                break;
            case kEosId:
                proto.eos_id = field->as_int();
                break;
            case kPaddingId:
                proto.padding_id = field->as_int();
                break;
            default:
                break;
        }
    }
}

void read_normalizer(std::string_view data, const std::string& label, SentencePieceProto& proto) {
    WireReader reader(data, label);
    while (const auto field = reader.next()) {
        if (field->is(kDummyPrefix, kVarint)) proto.add_dummy_prefix = field->value != 0;
        if (field->is(kRemoveExtra, kVarint)) proto.remove_extra_whitespaces = field->value != 0;
    }
}

class WireWriter {
  public:
    void number(std::uint32_t field, std::int64_t value) {
        varint(field << 3U | kVarint);
        varint(static_cast<std::uint64_t>(value));  // negative numbers take ten bytes, as the format asks
    }
    void bytes(std::uint32_t field, std::string_view value) {
        varint(field << 3U | kBytes);
        varint(value.size());
        out_ += value;
    }
    void real(std::uint32_t field, float value) {
        varint(field << 3U | kFixed32);
        std::string raw(sizeof value, '\0');
        std::memcpy(raw.data(), &value, sizeof value);
        out_ += raw;
    }
    const std::string& text() const { return out_; }

  private:
    void varint(std::uint64_t value) {
        for (; value >= 0x80; value >>= 7U)
            out_ += static_cast<char>(value | 0x80U);
        out_ += static_cast<char>(value);
    }
    std::string out_;
};

}  // namespace

SentencePieceProto read_sentencepiece_proto(std::string_view serialized, const std::string& label) {
    SentencePieceProto proto;
    WireReader reader(serialized, label);
    while (const auto field = reader.next()) {
        if (field->is(kPieces, kBytes)) proto.pieces.push_back(read_piece(field->bytes, label));
        if (field->is(kTrainer, kBytes)) read_trainer(field->bytes, label, proto);
        if (field->is(kNormalizer, kBytes)) read_normalizer(field->bytes, label, proto);
    }
    if (proto.pieces.empty())
        throw Error(ErrorKind::input, label + ": expected a SentencePiece model with pieces, found none.");
    return proto;
}

std::string write_sentencepiece_proto(const SentencePieceProto& proto) {
    WireWriter model;
    for (const SentencePieceProto::Piece& piece : proto.pieces) {
        WireWriter out;
        out.bytes(kPieceText, piece.text);
        out.real(kPieceScore, piece.score);
        out.number(kPieceType, piece.type);
        model.bytes(kPieces, out.text());
    }
    WireWriter trainer;
    trainer.number(kModelType, proto.model_type);
    trainer.number(kByteFallback, proto.byte_fallback ? 1 : 0);
    trainer.number(kUnknownId, proto.unknown_id);
    trainer.number(kBosId, proto.bos_id);
    trainer.number(kEosId, proto.eos_id);
    trainer.number(kPaddingId, proto.padding_id);
    model.bytes(kTrainer, trainer.text());
    WireWriter normalizer;
    normalizer.bytes(kNormalizerName, "identity");
    normalizer.number(kDummyPrefix, proto.add_dummy_prefix ? 1 : 0);
    normalizer.number(kRemoveExtra, proto.remove_extra_whitespaces ? 1 : 0);
    normalizer.number(kEscape, 1);
    model.bytes(kNormalizer, normalizer.text());
    return model.text();
}

std::string sentencepiece_with_controls(std::string_view serialized, const std::vector<std::int32_t>& ids,
                                        const std::string& label) {
    std::string out;
    WireReader reader(serialized, label);
    std::size_t begin = 0;
    std::int32_t piece = 0;
    auto control = ids.begin();
    while (const auto field = reader.next()) {
        const std::size_t end = serialized.size() - reader.left();
        if (field->is(kPieces, kBytes) && control != ids.end() && *control == piece) {
            WireWriter type;
            type.number(kPieceType, SentencePieceProto::control);
            WireWriter changed;
            changed.bytes(kPieces, std::string(field->bytes) + type.text());
            out += changed.text();
            ++control;
        } else {
            out += serialized.substr(begin, end - begin);
        }
        if (field->is(kPieces, kBytes)) ++piece;
        begin = end;
    }
    return out;
}

std::string sentencepiece_without_prefix() {
    WireWriter normalizer;
    normalizer.number(kDummyPrefix, 0);
    WireWriter model;
    model.bytes(kNormalizer, normalizer.text());
    return model.text();
}

}  // namespace recto
