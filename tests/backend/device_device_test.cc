// Memory, streams, events and errors of a device.
#include <gmock/gmock.h>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <cstdint>
#include <functional>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/device_test.h"
#include "tests/support/error_of.h"

namespace numsim {
namespace {

using ::testing::HasSubstr;

using OfTheDevice = DeviceTest;

std::vector<uint32_t> Counting(size_t size) {
  std::vector<uint32_t> values(size);
  std::iota(values.begin(), values.end(), 1u);
  return values;
}

TEST_F(OfTheDevice, ItsDescriptionIsPlausible) {
  const DeviceInfo& device = Device();
  EXPECT_FALSE(device.name.empty());
  EXPECT_GE(device.compute_capability, 50);
  EXPECT_GE(device.multiprocessors, 1);
  EXPECT_GE(device.memory_bytes, size_t{1} << 30);
  EXPECT_LE(device.l2_bytes, device.memory_bytes);
  for (const std::string& version : {device.driver, device.runtime}) {
    EXPECT_TRUE(std::isdigit(version.front()) && std::isdigit(version.back())) << version;
    EXPECT_THAT(version, HasSubstr("."));
  }
  EXPECT_FALSE(device.code.empty());
  EXPECT_EQ(device.IsHopper(), device.compute_capability == 90);
}

TEST_F(OfTheDevice, WhatIsCopiedInComesBack) {
  for (const size_t size : {size_t{0}, size_t{1}, size_t{1000}, (size_t{1} << 20) + 3}) {
    const std::vector<uint32_t> values = Counting(size);
    const Buffer<uint32_t> buffer = CopyAt(values, place());
    EXPECT_EQ(buffer.View().Elements(), size);
    EXPECT_EQ(ToVector(buffer.View()), values) << size;
  }
}

TEST_F(OfTheDevice, PartsOfArraysAreCopiedAndFilledAlone) {
  Buffer<uint32_t> buffer = CopyAt(Counting(100), place());
  const MatrixSpan<uint32_t> all = buffer.View();
  CopyMatrix<uint32_t>(all.Columns(10, 5), all.Columns(50, 5));
  device_memory::FillBytes(all.data + 20, 0xA5, 3 * sizeof(uint32_t), stream());
  std::vector<uint32_t> expected = Counting(100);
  std::copy_n(expected.begin() + 10, 5, expected.begin() + 50);
  std::fill_n(expected.begin() + 20, 3, 0xA5A5A5A5u);
  EXPECT_EQ(ToVector(all), expected);
  const std::vector<uint32_t> part = ToVector(all.Columns(48, 7));
  EXPECT_TRUE(std::equal(part.begin(), part.end(), expected.begin() + 48));
  EXPECT_EQ(device_memory::Fetch(all.data + 48, 7, stream()), part);
}

TEST_F(OfTheDevice, CopiesOfNothingDoNothing) {
  const Buffer<float> buffer = CopyAt(std::vector<float>(), place());
  EXPECT_EQ(buffer.View().data, nullptr);
  device_memory::CopyWithin(nullptr, nullptr, 0, stream());
  device_memory::FillBytes(nullptr, 1, 0, stream());
  EXPECT_TRUE(ToVector(buffer.View()).empty());
  stream().Wait();
}

TEST_F(OfTheDevice, MemoryIsAlignedTo256Bytes) {
  for (size_t bytes = 1; bytes < 3000; bytes = 3 * bytes + 1) {
    const Buffer<uint8_t> buffer(place(), bytes);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer.View().data) % 256, 0u) << bytes;
  }
}

TEST_F(OfTheDevice, BuffersGrowAndNeverShrink) {
  Buffer<uint32_t> buffer(place());
  uint32_t* const data = buffer.Renew(10).data;
  EXPECT_EQ(buffer.Renew(4).data, data);
  EXPECT_EQ(buffer.Renew(2, 5).data, data);
  const std::vector<uint32_t> values = Counting(10);
  CopyMatrix<uint32_t>(values, buffer.View());
  const size_t many = size_t{1} << 20;
  buffer.Resize(1, many);
  EXPECT_EQ(ToVector(buffer.View().Columns(0, 10)), values);
  CopyMatrix<uint32_t>(Counting(many), buffer.View());
  EXPECT_EQ(ToVector(buffer.View()), Counting(many));
}

// Half of the memory fits beside nothing but itself.
TEST_F(OfTheDevice, RenewGivesTheOldMemoryBackFirst) {
  const size_t half = Device().memory_bytes / 100 * 55;
  Buffer<uint8_t> buffer(place());
  const std::string error = ErrorOf([&] { buffer.Renew(half); });
  if (error != kNoError) GTEST_SKIP() << "others use this device: " << error;
  buffer.Renew(half + 1);
  EXPECT_EQ(buffer.View().Elements(), half + 1);
}

TEST_F(OfTheDevice, AMovedBufferOwnsWhatTheOtherDid) {
  Buffer<uint32_t> first = CopyAt(Counting(5), place());
  const uint32_t* const data = first.View().data;
  const Buffer<uint32_t> second = std::move(first);
  EXPECT_EQ(second.View().data, data);
  EXPECT_EQ(ToVector(second.View()), Counting(5));
}

// The memory stays with its owner, and what does not fit is refused, not allocated.
TEST_F(OfTheDevice, BorrowedMemoryIsUsedAndNotFreed) {
  Buffer<uint32_t> owner = CopyAt(Counting(100), place());
  const size_t before = AllocatedDeviceBytes();
  {
    Buffer<uint32_t> borrower(place(), 7);
    borrower.Borrow(owner.View().Columns(64, 20));
    EXPECT_EQ(AllocatedDeviceBytes(), before);
    EXPECT_EQ(borrower.Renew(4, 5).data, owner.View().data + 64);
    CopyMatrix<uint32_t>(std::vector<uint32_t>(20, 7), borrower.View());
    EXPECT_EQ(borrower.Resize(1, 3).data, owner.View().data + 64);
    const Buffer<uint32_t> copy = borrower;  // has memory of its own
    EXPECT_NE(copy.View().data, borrower.View().data);
    const Buffer<uint32_t> moved = std::move(borrower);
    EXPECT_EQ(moved.View().data, owner.View().data + 64);
  }
  EXPECT_EQ(AllocatedDeviceBytes(), before);
  std::vector<uint32_t> expected = Counting(100);
  std::fill_n(expected.begin() + 64, 20, 7u);
  EXPECT_EQ(ToVector(owner.View()), expected);
}

TEST_F(OfTheDevice, BorrowedMemoryThatIsTooSmallOrElsewhereIsAnError) {
  Buffer<uint32_t> owner(place(), 100), borrower(place());
  borrower.Borrow(owner.View());
  const std::string error =
      "Buffer: 101 elements, expected at most the 100 of the memory of another owner";
  EXPECT_EQ(ErrorOf([&] { borrower.Renew(101); }), error);
  EXPECT_EQ(ErrorOf([&] { borrower.Resize(1, 101); }), error);
  EXPECT_EQ(borrower.Renew(100).data, owner.View().data);  // as before
  std::vector<uint32_t> here(4);
  EXPECT_EQ(
      ErrorOf([&] { borrower.Borrow(here); }),
      "Buffer: memory of 1 x 4 elements with stride 4 on the host, expected contiguous memory "
      "on the device");
  const MatrixSpan<uint32_t> parts = owner.View().As(10, 10).Columns(0, 5);
  EXPECT_THAT(ErrorOf([&] { borrower.Borrow(parts); }),
              HasSubstr("10 x 5 elements with stride 10"));
}

TEST_F(OfTheDevice, TooMuchMemoryIsAnErrorThatNamesCallAndSizeAndIsThenForgotten) {
  const size_t bytes = size_t{1} << 60;
  const std::string message = ErrorOf([&] { Buffer<uint8_t>(place(), bytes); });
  EXPECT_THAT(message, HasSubstr("cudaMalloc, 1152921504606846976 bytes: "));
  // No later call is blamed for it.
  EXPECT_EQ(ToVector(CopyAt(Counting(9), place()).View()), Counting(9));
  stream().Wait();
}

TEST_F(OfTheDevice, ACopyThatCudaRefusesIsAnErrorThatNamesCallAndSizeAndIsThenForgotten) {
  Buffer<uint32_t> buffer(place(), 4);
  // No address of the device, nor one of the host that could be read.
  const std::string message = ErrorOf([&] {
    device_memory::CopyWithin(nullptr, buffer.View().data, 4 * sizeof(uint32_t), stream());
  });
  EXPECT_THAT(message, HasSubstr("cudaMemcpyAsync, 16 bytes on the device: "));
  EXPECT_EQ(ToVector(CopyAt(Counting(9), place()).View()), Counting(9));
}

TEST_F(OfTheDevice, EachThreadHasItsOwnStream) {
  const void* const here = ThreadStream().handle();
  EXPECT_EQ(ThreadStream().handle(), here);
  std::vector<uint32_t> back;
  const void* there = nullptr;
  std::thread other([&] {
    there = ThreadStream().handle();
    back = ToVector(CopyAt(Counting(1000), ThreadPlace()).View());
  });
  other.join();
  EXPECT_NE(there, here);
  EXPECT_EQ(back, Counting(1000));
}

TEST_F(OfTheDevice, AMovedStreamStillWorks) {
  DeviceStream first;
  DeviceStream second = std::move(first);
  EXPECT_EQ(first.handle(), nullptr);
  Buffer<uint32_t> buffer(place(), 17);
  device_memory::CopyIn(Counting(17).data(), buffer.View().data, 17 * sizeof(uint32_t), second);
  EXPECT_EQ(device_memory::Fetch(buffer.View().data, 17, second), Counting(17));
}

// By the host's clock too: a fill of 1 GiB takes longer than nothing and less than what passes
// here.
TEST_F(OfTheDevice, EventsMeasureWhatLiesBetweenThem) {
  Buffer<uint8_t> memory(place(), size_t{1} << 30);
  const auto fill = [&] {
    device_memory::FillBytes(memory.View().data, 1, memory.View().Bytes(), stream());
  };
  fill();  // warm
  stream().Wait();
  DeviceEvent begin, end;
  const auto start = std::chrono::steady_clock::now();
  begin.Record(stream());
  for (int i = 0; i < 8; ++i) fill();
  end.Record(stream());
  const double seconds = DeviceEvent::Seconds(begin, end);
  const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start;
  EXPECT_GT(seconds, 8 * 1.074e9 / 20e12);  // no device writes 20 TB/s
  EXPECT_LT(seconds, passed.count());
}

TEST_F(OfTheDevice, SecondsOfAnEventThatWasNeverRecordedAreAnError) {
  const DeviceEvent begin, end;
  EXPECT_THAT(ErrorOf([&] { DeviceEvent::Seconds(begin, end); }),
              HasSubstr("cudaEventElapsedTime, "));
  EXPECT_EQ(ToVector(CopyAt(Counting(3), place()).View()), Counting(3));
}

TEST_F(OfTheDevice, CopiesOfUnequalSizesThrow) {
  std::vector<float> three(3);
  Buffer<float> two(place(), 2);
  EXPECT_EQ(ErrorOf([&] { CopyMatrix<float>(three, two.View()); }),
            "CopyMatrix: 1 x 3 to 1 x 2, expected contiguous matrices of equal elements");
  EXPECT_EQ(ErrorOf([&] { CopyMatrix<float>(two.View(), three); }),
            "CopyMatrix: 1 x 2 to 1 x 3, expected contiguous matrices of equal elements");
}

}  // namespace
}  // namespace numsim
