--- The facts of an envelope: what a spec's first line says of its job. An ordinary one has none.
local function facts_in(spec)
  local facts = {}
  if string.byte(spec, 4) ~= 10 then
    for name, value in string.gmatch(string.match(spec, '^[^\n]*'), '(%w+)=(%S+)') do
      facts[name] = value
    end
  end
  return facts
end

--- The lane and the chain a job belongs to, or nil.
local function lane_in(spec)
  if not spec or string.byte(spec, 4) == 10 then
    return nil, nil
  end
  return string.match(spec, '^[^\n]- lane=(%S+)'), string.match(spec, '^[^\n]- chain=(%S+)')
end
