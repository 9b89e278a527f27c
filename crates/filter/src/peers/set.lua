-- Judges items by a Redis set of fingerprints. The extras are the fingerprints, one for each item,
-- empty where an item goes on unchecked.

local function filter_refusal(keys)
    return permission_refusal('SADD', keys[1], '')
end

-- Judges the arguments from `first` to `last`. Answers those that go on, how many of them are
-- unseen, and what remembers those.
local function judge(keys, _, first, last, first_extra)
    local asked, at = {}, {}
    for index = 0, last - first do
        local fingerprint = ARGV[first_extra + index]
        if fingerprint ~= '' then
            local count = #asked + 1
            asked[count], at[count] = fingerprint, first + index
        end
    end
    local is_seen, added = {}, {}
    for from = 1, #asked, CHUNK do
        local to = math.min(from + CHUNK - 1, #asked)
        local found = redis.call('SMISMEMBER', keys[1], unpack(asked, from, to))
        for index = 1, #found do
            local number = from + index - 1
            if found[index] == 1 then
                is_seen[at[number]] = true
            else
                added[#added + 1] = asked[number]
            end
        end
    end
    local onward = {}
    for index = first, last do
        if not is_seen[index] then
            onward[#onward + 1] = ARGV[index]
        end
    end
    return onward, #added, function()
        for from = 1, #added, CHUNK do
            redis.call('SADD', keys[1], unpack(added, from, math.min(from + CHUNK - 1, #added)))
        end
    end
end
