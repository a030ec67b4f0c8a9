--- Read letters from another home, or from this one, each once.
-- states   none
-- keys     received hash · flow, group hashes · errands, flows, flows_done zsets · letters streams
-- args     now · this home · the home they come from · (letter id · letter) …
-- returns  1 when there is something to be carried now, else 0
-- A letter is one of: ended, counted, pass, launch, call_off; the libraries tell what is in each.
--@flags allow-oom
--@include now, conf, tally, letter, graph, company, key
local now, home, source = now_us(ARGV[1]), ARGV[2], ARGV[3]

--- Ids of letters are `milliseconds-number`.
local function is_after(id, other)
  local ms, number = string.match(id, '^(%d+)-(%d+)$')
  local other_ms, other_number = string.match(other, '^(%d+)-(%d+)$')
  if ms ~= other_ms then
    return tonumber(ms) > tonumber(other_ms)
  end
  return tonumber(number) > tonumber(other_number)
end

local read = {
  counted = function(letter)
    count_members(letter[2], letter[3], now)
  end,
  ended = function(letter)
    local kind, which, name, state, job, words = unpack(letter, 2)
    if kind == 'g' then
      callback_ended(which, name, state, job)
    elseif call('EXISTS', flow_key(which)) == 1 then
      local flow = open_flow(which)
      end_node(flow, tonumber(name), state, job, words)
      close_flow(flow, home, now)
    end
  end,
}

local function read_of_flow(letter)
  if call('EXISTS', flow_key(letter[2])) == 0 then
    return
  end
  local flow = open_flow(letter[2])
  if flow.run ~= letter[3] or flow.state == 'reopened' then
    return   -- all of this run is decided anew
  elseif letter[1] == 'pass' then
    flow.work[1] = { letter[4], letter[5], letter[6] }
  elseif letter[1] == 'launch' then
    launch(flow, home, letter[4], now)
  else
    call_off(flow, home, letter[4], now)
  end
  close_flow(flow, home, now)
end

local last = call('HGET', key('received'), source)
for i = 4, #ARGV, 2 do
  if not last or is_after(ARGV[i], last) then
    last = ARGV[i]
    local letter = cmsgpack.unpack(ARGV[i + 1])
    local reading = read[letter[1]] or read_of_flow
    reading(letter)
  end
end
if last then
  call('HSET', key('received'), source, last)
end
flush_tally(now, conf_now().events_kept, '')
return context.has_mail and 1 or 0
