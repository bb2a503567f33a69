// Ends at once.
	s_endpgm
