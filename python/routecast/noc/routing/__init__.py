"""Which paths a flow takes and in which shares; what that loads each link with; whether it can deadlock."""
