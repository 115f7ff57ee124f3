// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pushrod/agreement.h>
#include <pushrod/config.h>
#include <pushrod/coordinator.h>
#include <pushrod/data_plane.h>
#include <pushrod/deadline.h>
#include <pushrod/engine_client.h>
#include <pushrod/executor.h>
#include <pushrod/log_sink.h>
#include <pushrod/phase.h>
#include <pushrod/rank.h>
#include <pushrod/rank_link.h>
#include <pushrod/report.h>
#include <pushrod/result.h>
#include <pushrod/status.h>
#include <pushrod/tensor.h>
#include <pushrod/version.h>
#include <pushrod/weight_source.h>
