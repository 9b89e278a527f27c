-- Claims the items of the source.
-- KEYS: lease, state, the keys of the source
-- ARGV: token, maximum number of items that one claim moves (0: all), maximum number of items to
--       claim while others are claimed
-- Answers 'ok', the source's place, the number of items to read after the place, the number of
--         items that were deleted from the source before urlseen read them.
local lease, state = unpack(KEYS, 1, 2)

local refusal = lease_refusal(lease, ARGV[1])
if refusal then
    return refusal
end
local place, left, lost
local most, more = tonumber(ARGV[2]), tonumber(ARGV[3])
refusal, place, left, lost = source_claim(state, {unpack(KEYS, 3)}, most, more)
return refusal or {'ok', place, left, lost}
