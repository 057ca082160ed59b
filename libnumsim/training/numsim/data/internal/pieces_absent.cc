// In place of pieces_sentencepiece.cc in a build without SentencePiece.
#include "numsim/base/error.h"
#include "numsim/data/internal/pieces.h"
#include "numsim/data/tokenizer.h"

namespace numsim {
namespace {

Error Absent() {
  return Error(
      "this build of numsim has no SentencePiece, which tokenizers need; install libsentencepiece-dev "
      "and build again");
}

}  // namespace

std::string_view TokenizerLibrary() { return {}; }
std::string PieceRecipe() { return {}; }
std::string TrainPieces(std::span<const CountedWord>, size_t) { throw Absent(); }

struct PieceModel::Library {};
PieceModel::PieceModel(std::string_view, const std::string&) { throw Absent(); }
PieceModel::~PieceModel() = default;
size_t PieceModel::Size() const { return 0; }
std::string PieceModel::Text(size_t) const { return {}; }
std::vector<uint16_t> PieceModel::Encode(std::string_view) const { return {}; }

}  // namespace numsim
