--- A job's state is where its id stands; it is stored nowhere else.
--@include keys
--@exports STATES, state_of, is_waiting, is_finished, live_jobs
local STATES = { 'ready', 'delayed', 'running', 'completed', 'dead', 'cancelled', 'blocked' }

--- Returns the state and the job's score in it, or nil for an unknown id.
local function state_of(id)
  for _, state in ipairs(STATES) do
    local score = call('ZSCORE', key(state), id)
    if score then
      return state, score
    end
  end
end

local function is_waiting(state)
  return state == 'ready' or state == 'delayed' or state == 'blocked'
end

local function is_finished(state)
  return state == 'completed' or state == 'dead' or state == 'cancelled'
end

--- How many jobs wait or run: what back-pressure is about.
local function live_jobs()
  return call('ZCARD', key('ready')) + call('ZCARD', key('delayed')) + call('ZCARD', key('blocked'))
    + call('ZCARD', key('running'))
end
