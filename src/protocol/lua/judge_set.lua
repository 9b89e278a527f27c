-- Judges items by a Redis set of fingerprints. `extras` are the fingerprints, one for each item,
-- empty where an item goes on unchecked.

local function filter_refusal(keys)
    return permission_refusal('SADD', keys[1], '')
end

-- Answers the items that go on, how many of them are unseen, and what remembers those.
local function judge(keys, _, items, fingerprints)
    local asked, at = {}, {}
    for index, fingerprint in ipairs(fingerprints) do
        if fingerprint ~= '' then
            asked[#asked + 1], at[#at + 1] = fingerprint, index
        end
    end
    local is_seen, added = {}, {}
    for from = 1, #asked, CHUNK do
        local to = math.min(from + CHUNK - 1, #asked)
        local found = redis.call('SMISMEMBER', keys[1], unpack(asked, from, to))
        for index, seen in ipairs(found) do
            local number = from + index - 1
            if seen == 1 then
                is_seen[at[number]] = true
            else
                added[#added + 1] = asked[number]
            end
        end
    end
    local onward = {}
    for index, item in ipairs(items) do
        if not is_seen[index] then
            onward[#onward + 1] = item
        end
    end
    return onward, #added, function()
        for from = 1, #added, CHUNK do
            redis.call('SADD', keys[1], unpack(added, from, math.min(from + CHUNK - 1, #added)))
        end
    end
end
