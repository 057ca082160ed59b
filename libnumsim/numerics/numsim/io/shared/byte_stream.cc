#include "numsim/io/shared/byte_stream.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <limits>
#include <string>
#include <vector>

#include "numsim/base/error.h"

namespace numsim {
namespace {

constexpr std::array kGzipMagic = {std::byte{0x1F}, std::byte{0x8B}};
constexpr size_t kInputBytes = size_t{1} << 16;
constexpr int kGzipAlone = 16 + MAX_WBITS;  // gzip framing only, no zlib framing

bool IsGzip(const InputFile& file) {
  std::array<std::byte, kGzipMagic.size()> head{};
  if (file.Size() < head.size()) return false;
  file.Read(0, head);
  return head == kGzipMagic;
}

Bytef* ZlibBytes(std::byte* bytes) { return reinterpret_cast<Bytef*>(bytes); }

}  // namespace

class ByteStream::Inflater {
 public:
  explicit Inflater(const InputFile& file) : file_(file), input_(kInputBytes) {
    if (inflateInit2(&zlib_, kGzipAlone) != Z_OK) {
      throw Error::Format("{}: zlib cannot start: out of memory", Name());
    }
  }
  ~Inflater() { inflateEnd(&zlib_); }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  size_t Read(std::span<std::byte> destination) {
    size_t done = 0;
    while (done < destination.size() && !(member_ended_ && AtEnd())) {
      if (member_ended_) BeginMember();
      done += Inflate(destination.subspan(done));
    }
    return done;
  }

 private:
  std::string Name() const { return file_.Path().string(); }
  bool AtEnd() const { return zlib_.avail_in == 0 && offset_ == file_.Size(); }

  void Refill() {
    if (zlib_.avail_in > 0) return;
    const size_t bytes = std::min<uint64_t>(input_.size(), file_.Size() - offset_);
    file_.Read(offset_, std::span(input_).first(bytes));
    offset_ += bytes;
    zlib_.next_in = ZlibBytes(input_.data());
    zlib_.avail_in = static_cast<uInt>(bytes);
  }

  // A gzip file may consist of several members; its content is their concatenation.
  void BeginMember() {
    inflateReset(&zlib_);
    member_ended_ = false;
  }

  // Returns the number of bytes written, which may be 0.
  size_t Inflate(std::span<std::byte> destination) {
    Refill();
    const size_t wanted = std::min<size_t>(destination.size(), std::numeric_limits<uInt>::max());
    zlib_.next_out = ZlibBytes(destination.data());
    zlib_.avail_out = static_cast<uInt>(wanted);
    const bool input_is_all = offset_ == file_.Size();
    const int result = inflate(&zlib_, Z_NO_FLUSH);
    const size_t written = wanted - zlib_.avail_out;
    if (result == Z_STREAM_END) {
      member_ended_ = true;
    } else if (result == Z_MEM_ERROR) {
      throw Error::Format("{}: zlib: out of memory", Name());
    } else if (result != Z_OK && result != Z_BUF_ERROR) {
      throw Error::Format("{}: damaged gzip data before byte {}: {}",
                          Name(),
                          offset_ - zlib_.avail_in,
                          zlib_.msg != nullptr ? zlib_.msg : "no reason given");
    } else if (input_is_all && zlib_.avail_in == 0 && zlib_.avail_out > 0) {
      throw Error::Format("{}: gzip data end too early: the file is cut short", Name());
    }
    return written;
  }

  const InputFile& file_;
  std::vector<std::byte> input_;
  uint64_t offset_ = 0;  // of the next byte to read from the file
  z_stream zlib_{};
  bool member_ended_ = false;
};

ByteStream::ByteStream(const std::filesystem::path& path) : file_(path) {
  if (IsGzip(file_)) inflater_ = std::make_unique<Inflater>(file_);
}

ByteStream::~ByteStream() = default;

size_t ByteStream::Read(std::span<std::byte> destination) {
  if (inflater_ != nullptr) return inflater_->Read(destination);
  const size_t bytes = std::min<uint64_t>(destination.size(), file_.Size() - offset_);
  file_.Read(offset_, destination.first(bytes));
  offset_ += bytes;
  return bytes;
}

std::string ReadInflatedText(const std::filesystem::path& path, uint64_t most) {
  constexpr size_t kPiece = size_t{1} << 20;
  ByteStream stream(path);
  if (!stream.Compressed()) return ReadText(path);
  std::string text;
  for (size_t got = kPiece; got == kPiece;) {
    const size_t begin = text.size();
    text.resize(begin + kPiece);
    got = stream.Read(std::as_writable_bytes(std::span(text).subspan(begin)));
    text.resize(begin + got);
    if (text.size() > most) {
      throw Error::Format(
          "{}: gzip data of more than {} bytes, expected at most that many", path.string(), most);
    }
  }
  return text;
}

}  // namespace numsim
