-- Sorts the oldest reject of an oversize item. The reject and the item leave the list, or move to
-- its other end.
-- KEYS: oversize, source
-- ARGV: the reject, its fate ('requeue', 'drop' or 'keep')
-- Answers 1; 0 if the script did nothing, because another reject is the oldest.
local oversize, source = unpack(KEYS)
local reject, fate = unpack(ARGV)

local refusal = type_refusal(oversize, 'list')
    or permission_refusal('LTRIM', oversize, 2, -1)
    or permission_refusal('LMOVE', oversize, oversize, 'LEFT', 'RIGHT')
    or fate == 'requeue' and source_push_refusal(source, oversize)
if refusal then
    return refusal
end
if redis.call('LINDEX', oversize, 0) ~= reject then
    return 0
end

-- After this line nothing can fail.
if fate == 'drop' then
    redis.call('LTRIM', oversize, 2, -1)
elseif fate == 'requeue' then
    redis.call('LTRIM', oversize, 1, -1)
    source_push_from(source, oversize)
else
    redis.call('LMOVE', oversize, oversize, 'LEFT', 'RIGHT')
    redis.call('LMOVE', oversize, oversize, 'LEFT', 'RIGHT')
end
return 1
