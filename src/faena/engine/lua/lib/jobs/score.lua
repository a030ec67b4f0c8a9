--- The place of a ready job: stamp + priority * age_step - boost * attempts * age_step.
-- Effective priority falls at the same speed for all, so these constants never need re-scoring.
-- The envelope of a spec begins with its priority in three digits.
--@include safe_read
--@exports priority_of, score_of
local LOWEST = 100   -- of a job whose spec is gone

local function priority_of(spec, mark)
  return mark and mark.p or spec and number_in(string.sub(spec, 1, 3)) or LOWEST
end

local function score_of(conf, stamp, priority, attempts)
  return stamp + (priority - conf.retry_boost * attempts) * conf.age_step_us
end
