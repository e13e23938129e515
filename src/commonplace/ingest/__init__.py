"""Taking other programs' notes in (contract 001, 11): their files, what each source says, plan and apply."""
