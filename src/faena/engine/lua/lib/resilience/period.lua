--- Days and months in UTC, for which money is counted.
--@exports day_of, month_of
local DAY_US = 86400000000

--- Year and month of a day since 1970-01-01, and the day of the month, from 1. Years begin in March here, so that a
-- leap day is the last of one.
local function date_of(days)
  local shifted = days + 719468
  local era = math.floor(shifted / 146097)
  local of_era = shifted - era * 146097
  local year = math.floor((of_era - math.floor(of_era / 1460) + math.floor(of_era / 36524) - math.floor(of_era / 146096)) / 365)
  local of_year = of_era - (365 * year + math.floor(year / 4) - math.floor(year / 100))
  local month = math.floor((5 * of_year + 2) / 153)
  local day = of_year - math.floor((153 * month + 2) / 5) + 1
  month = month < 10 and month + 3 or month - 9
  return year + era * 400 + (month <= 2 and 1 or 0), month, day
end

--- The name of the day of an instant, such as 20261116, and when it ends.
local function day_of(now)
  local days = math.floor(now / DAY_US)
  return string.format('%04d%02d%02d', date_of(days)), (days + 1) * DAY_US
end

--- The same of the month, such as 202611.
local function month_of(now)
  local days = math.floor(now / DAY_US)
  local year, month, day = date_of(days)
  local after = days + 32 - day             -- in the next month
  local _, _, into = date_of(after)
  return string.format('%04d%02d', year, month), (after - into + 1) * DAY_US
end
