// Does nothing. One wave, one group.
	s_endpgm
