--- Whether there is nothing but ready jobs: the queue of a worker that waits for the next one. One question then
-- stands for five; a call that settles a batch does not ask it.
--@include key
--@each is_quiet = false
local is_quiet

local function look_if_quiet(number)
  is_quiet = number <= 1
    and call('EXISTS', key('running'), key('delayed'), key('holds'), key('heads'), key('marks')) == 0
end
