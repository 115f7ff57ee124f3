// SPDX-License-Identifier: Apache-2.0
// The smallest trainer: a model in memory, "trained" by adding one to every weight, and pushed
// after each step. Every rank of the job runs this same program. README.md shows the marked parts.
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <pushrod/pushrod.h>

namespace {

// README: source
struct Weight {
  pushrod::TensorSpec spec;
  std::vector<float> values;
};

// Yields the model's tensors in the manifest's order. A trainer with sharded weights gathers each
// tensor in next(): every rank is asked for the same one at the same time.
class ModelSource final : public pushrod::WeightSource {
 public:
  explicit ModelSource(const std::vector<Weight>& model) : model_(model) {}

  pushrod::Result<pushrod::Manifest> manifest() override {
    pushrod::Manifest manifest;
    for (const Weight& weight : model_) {
      manifest.tensors.push_back(weight.spec);
    }
    return manifest;
  }

  pushrod::Status begin() override {
    next_ = 0;
    return {};
  }

  pushrod::Result<std::optional<pushrod::TensorView>> next() override {
    if (next_ == model_.size()) {
      return std::optional<pushrod::TensorView>();
    }
    const Weight& weight = model_[next_++];
    pushrod::TensorView view;
    view.name = weight.spec.name;
    view.dtype = weight.spec.dtype;
    view.shape = weight.spec.shape;
    view.data = weight.values.data();
    return std::optional(view);
  }

 private:
  const std::vector<Weight>& model_;
  std::size_t next_ = 0;
};

// README: end

Weight makeWeight(const std::string& name, const pushrod::Shape& shape) {
  Weight weight;
  weight.spec.name = name;
  weight.spec.dtype = pushrod::DType::kFloat32;
  weight.spec.shape = shape;
  weight.values.resize(weight.spec.bytes() / sizeof(float));
  std::iota(weight.values.begin(), weight.values.end(), 0.0F);
  return weight;
}

std::vector<Weight> makeModel() {
  return {makeWeight("model.embed_tokens.weight", {32, 8}),
          makeWeight("model.layers.0.mlp.down_proj.weight", {8, 16}),
          makeWeight("model.norm.weight", {8}),
          makeWeight("lm_head.weight", {32, 8})};
}

void trainStep(std::vector<Weight>& model) {
  for (Weight& weight : model) {
    for (float& value : weight.values) {
      value += 1.0F;
    }
  }
}

int fail(const pushrod::Status& status) {
  std::fprintf(stderr, "%s\n", status.message().c_str());
  return EXIT_FAILURE;
}

// README: push
int train(const char* configFile, int steps, std::vector<Weight>& model) {
  const auto config = pushrod::Config::load(configFile);
  if (!config) {
    return fail(config.status());
  }
  // Reads what torchrun, Slurm or Open MPI set; without them this is the only rank.
  auto coordinator = pushrod::PushCoordinator::create(*config, pushrod::Rank::fromEnvironment());
  if (!coordinator) {
    return fail(coordinator.status());
  }
  ModelSource source(model);
  for (int step = 1; step <= steps; ++step) {
    trainStep(model);
    const auto report = (*coordinator)->push({.version = std::to_string(step), .weights = &source});
    if (!report) {
      return fail(report.status());  // no push was made, or its outcome is unknown here
    }
    std::printf("%s\n", report->summary().c_str());
    if (report->outcome != pushrod::PushOutcome::kDone &&
        report->outcome != pushrod::PushOutcome::kRecovered) {
      return EXIT_FAILURE;  // the same on every rank; engines stay paused
    }
  }
  return EXIT_SUCCESS;
}

// README: end

}  // namespace

int main(int argc, char** argv) {
  const int steps = argc == 3 ? std::atoi(argv[2]) : 1;
  if (argc < 2 || argc > 3 || steps < 1) {
    std::fprintf(stderr, "usage: minimal_trainer CONFIG [STEPS]\n");
    return EXIT_FAILURE;
  }
  try {
    std::vector<Weight> model = makeModel();
    return train(argv[1], steps, model);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());  // the standard library's own, such as bad_alloc
    return EXIT_FAILURE;
  }
}
