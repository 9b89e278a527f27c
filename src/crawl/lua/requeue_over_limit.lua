-- Moves an item from the over-limit list to the end of the source.
-- KEYS: over-limit list, source
-- ARGV: fingerprint of the item in hex, the item
-- Answers 1; 0 if the list does not have the item any more.
local list, source = unpack(KEYS)
local fingerprint = ARGV[1]

local refusal = type_refusal(list, 'hash')
    or source_push_refusal(source)
    or permission_refusal('HDEL', list, fingerprint)
if refusal then
    return refusal
end
if redis.call('HEXISTS', list, fingerprint) == 0 then
    return 0
end

-- After this line nothing can fail, except the push if memory is short.
source_push(source, 2, 2)
redis.call('HDEL', list, fingerprint)
return 1
