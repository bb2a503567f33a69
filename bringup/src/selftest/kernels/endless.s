// Never ends: what a hang looks like.
.Lagain:
	s_sleep 1
	s_branch .Lagain
