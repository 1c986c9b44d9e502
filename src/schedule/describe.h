#ifndef MATINS_SCHEDULE_DESCRIBE_H_
#define MATINS_SCHEDULE_DESCRIBE_H_

#include <string>

#include "schedule/schedule_impl.h"

namespace matins {

// "at 01:00 every day, Asia/Shanghai".
std::string DescribeParts(const ScheduleParts& parts);

}  // namespace matins

#endif  // MATINS_SCHEDULE_DESCRIBE_H_
