--- The facts of an envelope: what a spec's first line says of its job. An ordinary one has none.
--@exports facts_in, with_lane, without_lane, lane_in, key_in
local function facts_in(spec)
  local facts = {}
  if string.byte(spec, 4) ~= 10 then
    for name, value in string.gmatch(string.match(spec, '^[^\n]*'), '(%w+)=(%S+)') do
      facts[name] = value
    end
  end
  return facts
end

--- A spec that says its job's lane; `without_lane` is the spec as its producer wrote it.
local function with_lane(spec, lane)
  return string.sub(spec, 1, 3) .. ' lane=' .. lane .. string.sub(spec, 4)
end

local function without_lane(spec, lane)
  local said = ' lane=' .. lane
  local after = string.byte(spec, 4 + #said)
  if string.find(spec, said, 4, true) == 4 and (after == 10 or after == 32) then
    return string.sub(spec, 1, 3) .. string.sub(spec, 4 + #said)
  end
  return spec
end

--- The lane and the chain a job belongs to, or nil.
local function lane_in(spec)
  if not spec or string.byte(spec, 4) == 10 then
    return nil, nil
  end
  return string.match(spec, '^[^\n]- lane=(%S+)'), string.match(spec, '^[^\n]- chain=(%S+)')
end

--- The key of its tenant that a job belongs to, where keys have limits, or nil.
local function key_in(spec)
  return spec and string.byte(spec, 4) ~= 10 and string.match(spec, '^[^\n]- key=(%S+)') or nil
end
