// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdio>
#include <exception>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include <pushrod/pushrod.h>

// README: source
// A model in memory, "trained" by adding one to every weight. A trainer with sharded weights
// gathers each tensor in next(): every rank is asked for the same one at the same time.
class Model final : public pushrod::WeightSource {
 public:
  void add(const std::string& name, const pushrod::Shape& shape) {
    specs_.push_back({name, pushrod::DType::kFloat32, shape});
    values_.emplace_back(specs_.back().bytes() / sizeof(float));
    std::iota(values_.back().begin(), values_.back().end(), 0.0F);
  }

  void trainStep() {
    for (std::vector<float>& values : values_) {
      std::for_each(values.begin(), values.end(), [](float& value) { value += 1.0F; });
    }
  }

  pushrod::Result<pushrod::Manifest> manifest() override { return pushrod::Manifest{specs_}; }

  pushrod::Status begin() override {
    next_ = 0;
    return {};
  }

  pushrod::Result<std::optional<pushrod::TensorView>> next() override {
    std::optional<pushrod::TensorView> view;  // none: the end of the pass
    if (next_ < specs_.size()) {
      view.emplace();
      view->name = specs_[next_].name;
      view->dtype = specs_[next_].dtype;
      view->shape = specs_[next_].shape;
      view->data = values_[next_++].data();
    }
    return view;
  }

 private:
  std::vector<pushrod::TensorSpec> specs_;
  std::vector<std::vector<float>> values_;
  std::size_t next_ = 0;
};

// README: end

int fail(const std::string& why) {
  std::fprintf(stderr, "%s\n", why.c_str());
  return 1;
}

// README: push
int train(Model& model, const std::string& configFile, int steps) {
  const auto config = pushrod::Config::load(configFile);
  if (!config) {
    return fail(config.status().message());
  }
  // Reads what torchrun, Slurm or Open MPI set; without them this is the only rank.
  auto coordinator = pushrod::PushCoordinator::create(*config, pushrod::Rank::fromEnvironment());
  if (!coordinator) {
    return fail(coordinator.status().message());
  }
  for (int step = 1; step <= steps; ++step) {
    model.trainStep();
    const auto report = (*coordinator)->push({.version = std::to_string(step), .weights = &model});
    if (!report) {
      return fail(report.status().message());  // no push was made, or its outcome is unknown here
    }
    std::puts(report->summary().c_str());
    if (report->outcome > pushrod::PushOutcome::kRecovered) {
      return 1;  // failed, the same on every rank; what is not proved current stays paused
    }
  }
  return 0;
}

// README: end

int main(int argc, char** argv) {
  try {
    Model model;
    model.add("model.embed_tokens.weight", {32, 8});
    model.add("model.layers.0.mlp.down_proj.weight", {8, 16});
    model.add("model.norm.weight", {8});
    model.add("lm_head.weight", {32, 8});
    return train(model, argc > 1 ? argv[1] : "pushrod.yaml", argc > 2 ? std::stoi(argv[2]) : 1);
  } catch (const std::exception& error) {
    return fail(error.what());
  }
}
