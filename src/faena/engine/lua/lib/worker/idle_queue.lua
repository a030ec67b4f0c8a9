--- Whether there is nothing but ready jobs: the queue of a worker that waits for the next one. One question then
-- stands for five; a call that settles a batch does not ask it.
--@include keys
--@exports is_idle, look_if_only_ready
--@state is_only_ready = false

--- Whether no job waits for its turn or runs. Marks of jobs that are over say nothing to the next one.
local function is_idle()
  return call('EXISTS', key('ready'), key('running'), key('delayed'), key('holds'), key('heads')) == 0
end

local function look_if_only_ready(number)
  context.is_only_ready = number <= 1
    and call('EXISTS', key('running'), key('delayed'), key('holds'), key('heads'), key('marks')) == 0
end
