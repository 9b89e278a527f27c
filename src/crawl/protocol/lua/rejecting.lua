-- Functions for the list of rejects.

-- Refuses if there are rejects and the user may not write to their list.
local function rejects_refusal(rejected, rejects)
    return rejects > 0 and (
        permission_refusal('RPUSH', rejected, '')
        or permission_refusal('LTRIM', rejected, 0, -1)) or nil
end

-- Pushes the arguments from `first` on to the list of rejects.
local function push_rejects(rejected, first)
    for from = first, #ARGV, CHUNK do
        redis.call('RPUSH', rejected, unpack(ARGV, from, math.min(from + CHUNK - 1, #ARGV)))
    end
end
