// A data set of which a training first sees a part.
#include <memory>
#include <utility>

#include "experiments/loss_spikes/loss_spikes.h"
#include "numsim/data/source.h"

namespace numsim::experiments::loss_spikes {
namespace {

class Growing final : public DataSource {
 public:
  Growing(std::shared_ptr<const DataSource> all, uint64_t change, uint64_t old_batches)
      : all_(std::move(all)), change_(change), old_batches_(old_batches) {}

  const DataShape& shape() const override { return all_->shape(); }
  void TrainBatch(
      uint64_t seed, uint64_t index, size_t count, size_t length, Batch& batch) const override {
    all_->TrainBatch(seed, index < change_ ? index % old_batches_ : index, count, length, batch);
  }
  size_t TrainBatches(size_t count, size_t length) const override {
    return all_->TrainBatches(count, length);
  }
  void ValidBatch(uint64_t index, size_t count, size_t length, Batch& batch) const override {
    all_->ValidBatch(index, count, length, batch);
  }
  size_t ValidBatches(size_t count, size_t length) const override {
    return all_->ValidBatches(count, length);
  }
  std::optional<double> EntropyBound() const override { return all_->EntropyBound(); }
  std::span<const uint16_t> TokenBytes() const override { return all_->TokenBytes(); }
  std::vector<std::pair<std::string, std::string>> Digests() const override {
    return all_->Digests();
  }
  std::string Describe() const override { return all_->Describe(); }

 private:
  std::shared_ptr<const DataSource> all_;
  uint64_t change_, old_batches_;
};

}  // namespace

std::shared_ptr<const DataSource> GrowingData(std::shared_ptr<const DataSource> all,
                                              uint64_t change,
                                              uint64_t old_batches) {
  return std::make_shared<Growing>(std::move(all), change, old_batches);
}

}  // namespace numsim::experiments::loss_spikes
